package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/quic-go/quic-go"
)

// The protocol of the cases about extensions, which interop/README.md describes.
const (
	extensionsALPN = "extensions"
	// A client sends round datagrams and reads them back, rounds times.
	round  = 10
	rounds = 20
	// echoPatience is how long a client waits for a datagram.
	echoPatience = 5 * time.Second
	// Each end of a stream writes written bytes, of which reliable must arrive in spite of the reset.
	written  = 500_000
	reliable = 100_000

	clientCode quic.StreamErrorCode = 7
	serverCode quic.StreamErrorCode = 9

	verdictMax = 1000
)

const extensionsUsage = "usage: extensions server ADDR CHAIN KEY | client datagrams|reset-at ADDR AUTHORITY"

func extensionsConfig() *quic.Config {
	config := quicConfig(30 * time.Second)
	config.EnableDatagrams = true
	config.EnableStreamResetPartialDelivery = true
	return config
}

func runExtensions(arguments []string) error {
	if len(arguments) != 4 {
		return errors.New(extensionsUsage)
	}
	switch arguments[0] {
	case "server":
		return extensionsServer(arguments[1], arguments[2], arguments[3])
	case "client":
		return extensionsClient(arguments[1], arguments[2], arguments[3])
	default:
		return errors.New(extensionsUsage)
	}
}

func extensionsServer(address, chain, key string) error {
	certificate, err := tls.LoadX509KeyPair(chain, key)
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{extensionsALPN}}
	listener, err := quic.ListenAddr(address, config, extensionsConfig())
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go echoAll(connection)
		go answerAll(connection)
	}
}

// echoAll sends every datagram back.
func echoAll(connection *quic.Conn) {
	for {
		datagram, err := connection.ReceiveDatagram(context.Background())
		if err == nil {
			err = connection.SendDatagram(datagram)
		}
		if err != nil {
			fmt.Println("connection ended:", err)
			return
		}
	}
}

// answerAll plays the server's part of the case reset-at on every stream and tells the client what it saw.
func answerAll(connection *quic.Conn) {
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			return
		}
		verdict := "ok"
		if err := exchangeResets(connection, stream, serverCode, clientCode); err != nil {
			verdict = err.Error()
		}
		answer, err := connection.OpenUniStreamSync(context.Background())
		if err != nil {
			return
		}
		_, _ = answer.Write([]byte(verdict)) // The client complains if nothing comes.
		_ = answer.Close()
	}
}

func extensionsClient(testcase, address, authority string) error {
	config, err := clientTLS(false, authority)
	if err != nil {
		return err
	}
	config.NextProtos = []string{extensionsALPN}
	if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
		return err
	}
	connection, err := quic.DialAddr(context.Background(), address, config, extensionsConfig())
	if err != nil {
		return err
	}
	switch testcase {
	case "datagrams":
		err = echoDatagrams(connection)
	case "reset-at":
		err = resetAndBeReset(connection)
	default:
		err = errors.New(extensionsUsage)
	}
	if err != nil {
		return err
	}
	return connection.CloseWithError(0, "")
}

func echoDatagrams(connection *quic.Conn) error {
	for number := range rounds {
		for place := range round {
			if err := connection.SendDatagram(datagram(byte(number*round + place))); err != nil {
				return err
			}
		}
		for range round {
			ctx, cancel := context.WithTimeout(context.Background(), echoPatience)
			back, err := connection.ReceiveDatagram(ctx)
			cancel()
			if err != nil {
				return fmt.Errorf("a datagram of round %d does not come back: %w", number, err)
			}
			if len(back) == 0 || int(back[0])/round != number || !bytes.Equal(back, datagram(back[0])) {
				return fmt.Errorf("a datagram of round %d is damaged, or from another", number)
			}
		}
	}
	return nil
}

// datagram has between 1 and 1,127 bytes, of which the first is the number.
func datagram(number byte) []byte {
	datagram := make([]byte, 1+int(number)*89%1127)
	for at := range datagram {
		datagram[at] = number + byte(at)
	}
	return datagram
}

func resetAndBeReset(connection *quic.Conn) error {
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if err := exchangeResets(connection, stream, clientCode, serverCode); err != nil {
		return err
	}
	answer, err := connection.AcceptUniStream(context.Background())
	if err != nil {
		return err
	}
	verdict, err := io.ReadAll(io.LimitReader(answer, verdictMax))
	if err != nil {
		return err
	}
	if string(verdict) != "ok" {
		return fmt.Errorf("the server says: %s", verdict)
	}
	return nil
}

// exchangeResets resets a stream with one code and sees it reset with another.
func exchangeResets(connection *quic.Conn, stream *quic.Stream, own, peers quic.StreamErrorCode) error {
	// Without this the boundary has no effect, and the bytes in front of it may arrive by luck.
	if !connection.ConnectionState().SupportsStreamResetPartialDelivery.Remote {
		return errors.New("the peer announces no RESET_STREAM_AT")
	}
	failed := make(chan error, 1)
	go func() { failed <- writeAndReset(stream, own) }()
	if err := readUntilReset(stream, peers); err != nil {
		return err
	}
	return <-failed
}

// writeAndReset resets a stream while the bytes behind its reliable beginning are on their way.
func writeAndReset(stream *quic.Stream, code quic.StreamErrorCode) error {
	data := make([]byte, written)
	for at := range data {
		data[at] = pattern(at)
	}
	if _, err := stream.Write(data[:reliable]); err != nil {
		return err
	}
	stream.SetReliableBoundary()
	go func() { _, _ = stream.Write(data[reliable:]) }() // It fails at the reset.
	time.Sleep(10 * time.Millisecond)
	stream.CancelWrite(code)
	return nil
}

// readUntilReset reads what the peer wrote: its reliable beginning for certain, and never all of it.
func readUntilReset(stream *quic.Stream, code quic.StreamErrorCode) error {
	data, end := io.ReadAll(stream)
	fmt.Println(len(data), "bytes received, then:", end)
	for at, value := range data {
		if value != pattern(at) {
			return fmt.Errorf("damaged at byte %d", at)
		}
	}
	var reset *quic.StreamError
	if !errors.As(end, &reset) || !reset.Remote || reset.ErrorCode != code || len(data) < reliable || len(data) >= written {
		return fmt.Errorf("%d bytes came before: %v", len(data), end)
	}
	return nil
}

// pattern is the byte at a place of a stream.
func pattern(at int) byte {
	return byte(at % 251)
}
