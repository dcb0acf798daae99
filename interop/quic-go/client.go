package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

type client struct {
	connection *quic.Conn
	host       string
	// http3 is nil where files go over HTTP/0.9.
	http3  *http3.ClientConn
	outDir string
	report *report
	// ticket is closed when there is a session to resume; nil if nobody waits for one.
	ticket chan struct{}
}

// ticketPatience is how long to wait for a session to resume.
const ticketPatience = 5 * time.Second

func runClient(arguments []string) (*report, error) {
	flags := newFlagSet("client")
	insecure := flags.Bool("insecure", false, "accept any certificate")
	caFile := flags.String("ca", "", "certificates to trust, PEM")
	chacha20 := flags.Bool("chacha20", false, "offer TLS_CHACHA20_POLY1305_SHA256 only")
	outDir := flags.String("out", "", "directory for the files; without it they are read and dropped")
	parallel := flags.Int("parallel", 100, "requests under way at once")
	idle := flags.Duration("idle", 30*time.Second, "idle timeout")
	testcase := flags.String("testcase", "transfer", "multiconnect, resumption and zerortt divide the URLs among connections, http3 is HTTP/3")
	hold := flags.Duration("hold", 0, "keep the connection open this long after the last file")
	_ = flags.Parse(arguments) // The flag set exits on errors.

	report := newReport("client")
	if *chacha20 {
		offerOnlyChaCha20()
	}
	host, paths, err := parseURLs(flags.Args())
	if err != nil {
		return report.finish(), err
	}
	tlsConfig, err := clientTLS(*insecure, *caFile)
	if err != nil {
		return report.finish(), err
	}
	keys, err := keyLog()
	if err != nil {
		return report.finish(), err
	}
	tlsConfig.KeyLogWriter = keys
	tlsConfig.NextProtos = []string{protocol(*testcase)}
	config := quicConfig(*idle)
	config.HandshakeIdleTimeout = max(*idle, 10*time.Second)
	tickets := newTicketCache()
	if *testcase == "resumption" || *testcase == "zerortt" {
		tlsConfig.ClientSessionCache = tickets
	}
	for number, part := range divide(paths, *testcase) {
		early := *testcase == "zerortt" && number > 0
		connection, err := dial(host, tlsConfig, config, early)
		if err != nil {
			return report.finish(), fmt.Errorf("no connection: %w", err)
		}
		if !early {
			report.handshakeDone(connection.ConnectionState())
		}
		client := &client{connection: connection, host: host, outDir: *outDir, report: report}
		if *testcase == http3Case {
			client.http3 = (&http3.Transport{}).NewClientConn(connection)
		}
		if tlsConfig.ClientSessionCache != nil && number == 0 {
			client.ticket = tickets.arrived
		}
		if err := client.run(part, max(*parallel, 1), *hold); err != nil {
			return report.finish(), err
		}
	}
	return report.finish(), nil
}

// divide tells which files go over which connection.
func divide(paths []string, testcase string) [][]string {
	switch testcase {
	case "multiconnect":
		var parts [][]string
		for _, path := range paths {
			parts = append(parts, []string{path})
		}
		return parts
	case "resumption", "zerortt":
		return [][]string{paths[:1], paths[1:]}
	default:
		return [][]string{paths}
	}
}

func dial(host string, tlsConfig *tls.Config, config *quic.Config, early bool) (*quic.Conn, error) {
	if early {
		return quic.DialAddrEarly(context.Background(), host, tlsConfig, config)
	}
	return quic.DialAddr(context.Background(), host, tlsConfig, config)
}

// ticketCache tells when there is a session to resume.
type ticketCache struct {
	tls.ClientSessionCache
	arrived chan struct{}
	once    sync.Once
}

func newTicketCache() *ticketCache {
	return &ticketCache{ClientSessionCache: tls.NewLRUClientSessionCache(1), arrived: make(chan struct{})}
}

func (c *ticketCache) Put(key string, state *tls.ClientSessionState) {
	c.ClientSessionCache.Put(key, state)
	if state != nil {
		c.once.Do(func() { close(c.arrived) })
	}
}

// parseURLs gives the one host and port that all URLs name, and their paths.
func parseURLs(texts []string) (host string, paths []string, err error) {
	for _, text := range texts {
		parsed, err := url.Parse(text)
		if err != nil {
			return "", nil, err
		}
		if host != "" && host != parsed.Host {
			return "", nil, errors.New("all URLs must name the same server")
		}
		host = parsed.Host
		paths = append(paths, parsed.Path)
	}
	if host == "" {
		return "", nil, errors.New("no URL given")
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "443")
	}
	return host, paths, nil
}

func clientTLS(insecure bool, caFile string) (*tls.Config, error) {
	config := &tls.Config{NextProtos: []string{alpn}, InsecureSkipVerify: insecure}
	if caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", caFile)
	}
	return config, nil
}

// run gets all files, keeps the connection as long as asked and closes it.
func (c *client) run(paths []string, parallel int, hold time.Duration) error {
	if err := c.getAll(paths, parallel); err != nil {
		return err
	}
	if c.ticket != nil {
		select {
		case <-c.ticket:
		case <-time.After(ticketPatience):
			return errors.New("the server sent no ticket")
		}
	}
	if hold > 0 {
		select {
		case <-c.connection.Context().Done():
			reason := c.report.ended(context.Cause(c.connection.Context()))
			if reason != "idle timeout" {
				return errors.New("the connection ended: " + reason)
			}
			return nil
		case <-time.After(hold):
		}
	}
	return c.connection.CloseWithError(0, "")
}

// getAll downloads with a fixed number of workers and gives the first error.
func (c *client) getAll(paths []string, parallel int) error {
	queue := make(chan string)
	failures := make(chan error, parallel)
	var workers sync.WaitGroup
	for range min(parallel, len(paths)) {
		workers.Go(func() {
			for path := range queue {
				if err := c.get(path); err != nil {
					failures <- fmt.Errorf("%s: %w", path, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()
	for _, path := range paths {
		select {
		case queue <- path:
		case err := <-failures:
			close(queue)
			return err
		}
	}
	close(queue)
	<-done
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

func (c *client) get(urlPath string) error {
	body, err := c.open(urlPath)
	if err != nil {
		return err
	}
	defer body.Close()
	out := io.Discard
	if c.outDir != "" {
		file, err := os.Create(filepath.Join(c.outDir, path.Base(urlPath)))
		if err != nil {
			return err
		}
		defer file.Close()
		out = file
	}
	bytes, err := io.Copy(out, body)
	c.report.transferred(bytes)
	return err
}

// open asks for a file.
func (c *client) open(urlPath string) (io.ReadCloser, error) {
	if c.http3 != nil {
		return c.request(c.host, urlPath)
	}
	stream, err := c.connection.OpenStreamSync(context.Background())
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(stream, "GET %s\r\n", urlPath); err != nil {
		return nil, err
	}
	if err := stream.Close(); err != nil {
		return nil, err
	}
	return io.NopCloser(stream), nil
}
