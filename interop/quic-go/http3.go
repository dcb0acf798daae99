package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// http3Case is the case whose files go over HTTP/3.
const http3Case = "http3"

// protocol is the ALPN of a case.
func protocol(testcase string) string {
	if testcase == http3Case {
		return http3.NextProtoH3
	}
	return alpn
}

// serveHTTP3 answers requests until the program is told to stop.
func (s *server) serveHTTP3(ctx context.Context, listener *quic.EarlyListener) error {
	server := &http3.Server{Handler: http.FileServerFS(s.root.FS())}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ServeListener(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// request gives the body of a file.
func (c *client) request(host, path string) (io.ReadCloser, error) {
	request, err := http.NewRequest(http.MethodGet, "https://"+host+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http3.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	return response.Body, nil
}
