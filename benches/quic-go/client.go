package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	warmUp         = 50_000_000
	memoryWarmUp   = 64
	memoryParallel = 16
	settle         = 2 * time.Second
)

type client struct {
	o         *options
	transport *quic.Transport
	tls       *tls.Config
	server    net.Addr
	bytes     []byte
}

// ask runs one workload and prints its figures.
func ask(o *options, address string) error {
	server, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		return err
	}
	tlsConfig, err := clientTLS(o)
	if err != nil {
		return err
	}
	transport, err := newTransport()
	if err != nil {
		return err
	}
	c := &client{o: o, transport: transport, tls: tlsConfig, server: server, bytes: content()}
	var result *figures
	switch o.workload {
	case "download", "upload":
		result, err = c.transfers()
	case "requests":
		result, err = c.requests()
	case "handshakes":
		result, err = c.handshakes()
	case "memory":
		result, err = c.memory()
	default:
		err = unsupported("this program does not measure " + o.workload + " over quic-go")
	}
	if err != nil {
		return err
	}
	result.ClientPeakKB, result.ServerPeakKB = kilobytes(0, "VmHWM"), kilobytes(o.serverPid, "VmHWM")
	line, err := json.Marshal(result)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	return nil
}

func (c *client) dial() (*quic.Conn, error) {
	return c.transport.Dial(context.Background(), c.server, c.tls, config())
}

func (c *client) transfer(stream *quic.Stream, size uint64) error {
	var sum digest
	kind := byte(kindDownload)
	if c.o.workload == "upload" {
		kind = kindUpload
	}
	if _, err := stream.Write(question(kind, size)); err != nil {
		return err
	}
	move := func() error { return read(stream, size, &sum) }
	if kind == kindUpload {
		move = func() error { return write(stream, c.bytes, size, &sum) }
	}
	if err := move(); err != nil {
		return err
	}
	return checked(stream, &sum)
}

func checked(stream io.Reader, sum *digest) error {
	var value [8]byte
	if _, err := io.ReadFull(stream, value[:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint64(value[:]) != sum.value() {
		return errDamaged
	}
	return nil
}

func (c *client) transfers() (*figures, error) {
	connection, err := c.dial()
	if err != nil {
		return nil, err
	}
	all := func(size uint64) error {
		return parallel(c.o.streams, func(uint64) error {
			stream, err := connection.OpenStreamSync(context.Background())
			if err != nil {
				return err
			}
			defer stream.Close()
			return c.transfer(stream, size/c.o.streams)
		})
	}
	if err := all(min(warmUp, c.o.size)); err != nil {
		return nil, err
	}
	meter := startMeter(c.o.serverPid)
	if err := all(c.o.size); err != nil {
		return nil, err
	}
	return meter.stop(c.o.size / c.o.streams * c.o.streams), nil
}

func request(connection *quic.Conn, size uint64) error {
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := stream.Write(question(kindDownload, size)); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	var sum digest
	if err := read(stream, size, &sum); err != nil {
		return err
	}
	return checked(stream, &sum)
}

// counted does something count times, by so many at once, and gives the latencies in nanoseconds.
func counted(workers, count uint64, once func(worker uint64) error) ([]int64, error) {
	var left atomic.Int64
	left.Store(int64(count))
	latencies := make([][]int64, workers)
	err := parallel(workers, func(worker uint64) error {
		for left.Add(-1) >= 0 {
			start := time.Now()
			if err := once(worker); err != nil {
				return err
			}
			latencies[worker] = append(latencies[worker], int64(time.Since(start)))
		}
		return nil
	})
	return slices.Concat(latencies...), err
}

func (c *client) requests() (*figures, error) {
	connections := make([]*quic.Conn, c.o.connections)
	for n := range connections {
		var err error
		if connections[n], err = c.dial(); err != nil {
			return nil, err
		}
	}
	once := func(worker uint64) error { return request(connections[worker%c.o.connections], c.o.size) }
	workers := c.o.connections * c.o.concurrent
	if _, err := counted(workers, c.o.count/10, once); err != nil {
		return nil, err
	}
	return c.measured(workers, once)
}

func (c *client) measured(workers uint64, once func(uint64) error) (*figures, error) {
	meter := startMeter(c.o.serverPid)
	latencies, err := counted(workers, c.o.count, once)
	if err != nil {
		return nil, err
	}
	result := meter.stop(uint64(len(latencies)))
	result.Latency = percentiles(latencies)
	return result, nil
}

func (c *client) handshakes() (*figures, error) {
	if c.o.handshake == "0rtt" || c.o.handshake == "resumed" {
		return nil, unsupported("this program does not resume over quic-go")
	}
	c.tls.ClientSessionCache = nil
	once := func(uint64) error {
		connection, err := c.dial()
		if err != nil {
			return err
		}
		if c.o.handshake == "answered" {
			if err := request(connection, 0); err != nil {
				return err
			}
		}
		return connection.CloseWithError(0, "")
	}
	if _, err := counted(c.o.concurrent, 4*c.o.concurrent, once); err != nil {
		return nil, err
	}
	return c.measured(c.o.concurrent, once)
}

func (c *client) memory() (*figures, error) {
	hold := func(uint64) error {
		connection, err := c.dial()
		if err != nil || !c.o.active {
			return err
		}
		stream, err := connection.OpenStreamSync(context.Background())
		if err != nil {
			return err
		}
		return c.transfer(stream, c.o.size)
	}
	if _, err := counted(memoryParallel, memoryWarmUp, hold); err != nil {
		return nil, err
	}
	time.Sleep(settle)
	ours, theirs := kilobytes(0, "VmRSS"), kilobytes(c.o.serverPid, "VmRSS")
	meter := startMeter(c.o.serverPid)
	if _, err := counted(memoryParallel, c.o.connections, hold); err != nil {
		return nil, err
	}
	time.Sleep(settle)
	result := meter.stop(c.o.connections)
	each := func(before, after uint64) *float64 {
		bytes := (float64(after) - float64(before)) * 1024 / float64(c.o.connections)
		return &bytes
	}
	result.ClientBytes = each(ours, kilobytes(0, "VmRSS"))
	result.ServerBytes = each(theirs, kilobytes(c.o.serverPid, "VmRSS"))
	return result, nil
}

// parallel runs something in so many goroutines and gives the first error.
func parallel(count uint64, work func(uint64) error) error {
	var group sync.WaitGroup
	errs := make(chan error, count)
	for n := range count {
		group.Go(func() { errs <- work(n) })
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
