// Command bench-quic-go is one end of a benchmark over quic-go. Command line, questions and figures are those of bench-stack
// (benches/stacks), as far as quic-go can do what is asked. It also serves files over HTTP/3.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	alpn         = "bench"
	window       = 16 << 20
	streams      = 8192
	idle         = 300 * time.Second
	chunk        = 64 << 10
	questionLen  = 17
	kindDownload = 1
	kindUpload   = 2
)

var errDamaged = errors.New("the bytes received are not those that were sent")

// unsupported is an error for what the stack does not have.
func unsupported(what string) error { return errors.New("unsupported: " + what) }

type options struct {
	stack, cert, key, dir, controller, cipher, runtime, workload, handshake string
	payload, workers                                                        int
	size, streams, connections, concurrent, count, milliseconds             uint64
	serverPid                                                               int
	active, inTasks                                                         bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("usage: bench-quic-go server [options] | client ADDRESS [options] | http3 [options]")
	}
	role, arguments, address := os.Args[1], os.Args[2:], ""
	if role == "client" && len(arguments) > 0 {
		address, arguments = arguments[0], arguments[1:]
	}
	o, err := parse(role, arguments)
	if err != nil {
		return err
	}
	switch role {
	case "server":
		return serve(o)
	case "client":
		return ask(o, address)
	case "http3":
		return serveFiles(o)
	}
	return fmt.Errorf("%s is neither server nor client nor http3", role)
}

func parse(role string, arguments []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("bench-quic-go "+role, flag.ExitOnError)
	flags.StringVar(&o.stack, "stack", "quic-go", "which it is")
	flags.StringVar(&o.cert, "cert", "", "certificate, PEM; the client trusts exactly it")
	flags.StringVar(&o.key, "key", "", "private key, PEM")
	flags.StringVar(&o.dir, "dir", ".", "what to serve over HTTP/3")
	flags.StringVar(&o.controller, "controller", "", "congestion controller")
	flags.StringVar(&o.cipher, "cipher", "aes128", "cipher")
	flags.StringVar(&o.runtime, "runtime", "current", "runtime; Go has its own")
	flags.IntVar(&o.payload, "payload", 1452, "bytes of UDP payload in a full packet")
	flags.IntVar(&o.workers, "workers", 1, "workers of the endpoint")
	flags.StringVar(&o.workload, "workload", "download", "what to measure")
	flags.StringVar(&o.handshake, "handshake", "full", "kind of handshake")
	flags.Uint64Var(&o.size, "size", 1024, "bytes of a transfer or an answer")
	flags.Uint64Var(&o.streams, "streams", 1, "streams of a transfer")
	flags.Uint64Var(&o.connections, "connections", 1, "connections")
	flags.Uint64Var(&o.concurrent, "concurrent", 1, "requests or handshakes under way")
	flags.Uint64Var(&o.count, "count", 1000, "requests or handshakes in all")
	flags.Uint64Var(&o.milliseconds, "milliseconds", 2000, "how long frames or datagrams flow")
	flags.IntVar(&o.serverPid, "server-pid", 0, "the process of the server")
	flags.BoolVar(&o.active, "active", false, "active connections")
	flags.BoolVar(&o.inTasks, "in-tasks", false, "always so in Go")
	_ = flags.Parse(arguments) // The flag set exits on errors.
	switch {
	case o.controller != "" && o.controller != "newreno":
		return nil, unsupported("its controller cannot be chosen")
	case o.cipher != "aes128":
		return nil, unsupported("the cipher suites of Go's TLS 1.3 cannot be chosen")
	case o.payload != 1452:
		return nil, unsupported("its packets have at most 1,452 bytes")
	case o.workers != 1:
		return nil, unsupported("an endpoint has one socket")
	}
	return o, nil
}

func config() *quic.Config {
	return &quic.Config{
		MaxIdleTimeout:                 idle,
		InitialStreamReceiveWindow:     window,
		MaxStreamReceiveWindow:         window,
		InitialConnectionReceiveWindow: window,
		MaxConnectionReceiveWindow:     window,
		MaxIncomingStreams:             streams,
		InitialPacketSize:              1452,
		Allow0RTT:                      true,
	}
}

func serverTLS(o *options) (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, err
	}
	curves := []tls.CurveID{tls.X25519}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{alpn}, CurvePreferences: curves}, nil
}

func clientTLS(o *options) (*tls.Config, error) {
	pem, err := os.ReadFile(o.cert)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("the certificate cannot be read")
	}
	return &tls.Config{
		RootCAs: roots, ServerName: "localhost", NextProtos: []string{alpn},
		CurvePreferences: []tls.CurveID{tls.X25519}, ClientSessionCache: tls.NewLRUClientSessionCache(64),
	}, nil
}

func newTransport() (*quic.Transport, error) {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	return &quic.Transport{Conn: socket}, nil
}

// content is what is sent.
func content() []byte {
	bytes := make([]byte, chunk)
	for n := 0; n < chunk; n += 8 {
		binary.LittleEndian.PutUint64(bytes[n:], uint64(n/8+1)*0x2545f4914f6cdd1d)
	}
	return bytes
}

func question(kind byte, size uint64) []byte {
	bytes := make([]byte, questionLen)
	bytes[0] = kind
	binary.BigEndian.PutUint64(bytes[1:], size)
	return bytes
}
