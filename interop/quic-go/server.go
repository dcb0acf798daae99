package main

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// requestMax bounds a request line.
	requestMax = 8 << 10
	// errorNotFound resets the stream of a request that cannot be answered; HTTP/0.9 has no status codes.
	errorNotFound quic.StreamErrorCode = 0x404
)

type server struct {
	root   *os.Root
	report *report
}

func runServer(arguments []string) (*report, error) {
	flags := newFlagSet("server")
	listen := flags.String("listen", "127.0.0.1:4433", "address and port to listen on")
	www := flags.String("www", ".", "directory to serve")
	certFile := flags.String("cert", "", "certificate chain, PEM")
	keyFile := flags.String("key", "", "private key, PEM")
	retry := flags.Bool("retry", false, "validate every client's address with a Retry packet")
	idle := flags.Duration("idle", 30*time.Second, "idle timeout")
	testcase := flags.String("testcase", "transfer", "http3 is HTTP/3")
	resetKey := flags.String("reset-key", "", "key of the stateless reset tokens, 64 hexadecimal digits")
	_ = flags.Parse(arguments) // The flag set exits on errors.

	report := newReport("server")
	certificate, err := tls.LoadX509KeyPair(*certFile, *keyFile)
	if err != nil {
		return report.finish(), fmt.Errorf("the certificate cannot be loaded: %w", err)
	}
	root, err := os.OpenRoot(*www)
	if err != nil {
		return report.finish(), err
	}
	transport, err := newTransport(*listen)
	if err != nil {
		return report.finish(), err
	}
	if *resetKey != "" {
		if transport.StatelessResetKey, err = parseResetKey(*resetKey); err != nil {
			return report.finish(), err
		}
	}
	if *retry {
		transport.VerifySourceAddress = func(net.Addr) bool { return true }
	}
	keys, err := keyLog()
	if err != nil {
		return report.finish(), err
	}
	tlsConfig := &tls.Config{
		KeyLogWriter: keys,
		Certificates: []tls.Certificate{certificate},
		NextProtos:   []string{protocol(*testcase)},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			report.offered(hello.CipherSuites)
			return nil, nil
		},
	}
	config := quicConfig(*idle)
	config.Allow0RTT = true
	listener, err := transport.ListenEarly(tlsConfig, config)
	if err != nil {
		return report.finish(), err
	}
	fmt.Println("listening on", listener.Addr())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &server{root: root, report: report}
	if *testcase == http3Case {
		return report.finish(), server.serveHTTP3(ctx, listener)
	}
	err = server.serve(ctx, listener)
	return report.finish(), err
}

func newTransport(address string) (*quic.Transport, error) {
	udpAddress, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", udpAddress)
	if err != nil {
		return nil, err
	}
	return &quic.Transport{Conn: socket, ConnectionIDLength: 8}, nil
}

func parseResetKey(digits string) (*quic.StatelessResetKey, error) {
	bytes, err := hex.DecodeString(digits)
	if err != nil {
		return nil, fmt.Errorf("the reset key is not hexadecimal: %w", err)
	}
	var key quic.StatelessResetKey
	if len(bytes) != len(key) {
		return nil, fmt.Errorf("the reset key must have %d bytes", len(key))
	}
	copy(key[:], bytes)
	return &key, nil
}

// serve accepts connections until the program is told to stop.
func (s *server) serve(ctx context.Context, listener *quic.EarlyListener) error {
	for {
		connection, err := listener.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go s.serveConnection(connection)
	}
}

func (s *server) serveConnection(connection *quic.Conn) {
	go func() {
		// With 0-RTT, requests may come before the handshake is complete.
		select {
		case <-connection.HandshakeComplete():
			s.report.handshakeDone(connection.ConnectionState())
		case <-connection.Context().Done():
		}
	}()
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			fmt.Println("connection ended:", s.report.ended(err))
			return
		}
		go func() {
			if err := s.answer(stream); err != nil {
				fmt.Fprintln(os.Stderr, "request failed:", err)
				stream.CancelWrite(errorNotFound)
			}
		}()
	}
}

// answer reads one request and sends the file that it names.
func (s *server) answer(stream *quic.Stream) error {
	request, err := io.ReadAll(io.LimitReader(stream, requestMax))
	if err != nil {
		return err
	}
	path, isGet := strings.CutPrefix(strings.TrimRight(string(request), " \r\n"), "GET /")
	if !isGet {
		return errors.New("not an HTTP/0.9 request")
	}
	// os.Root keeps every path inside of the served directory.
	file, err := s.root.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	bytes, err := io.Copy(stream, file)
	s.report.transferred(bytes)
	if err != nil {
		return err
	}
	return stream.Close()
}
