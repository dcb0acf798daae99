package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"github.com/quic-go/quic-go/http3"
)

// serveFiles serves the files of a directory over HTTP/3 until the process is ended.
func serveFiles(o *options) error {
	certificate, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	server := http3.Server{
		Handler: http.FileServer(http.Dir(o.dir)),
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{
			Certificates: []tls.Certificate{certificate}, CurvePreferences: []tls.CurveID{tls.X25519},
		}),
		QUICConfig: config(),
	}
	fmt.Println("listening on", socket.LocalAddr())
	return server.Serve(socket)
}
