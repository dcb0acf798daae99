package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/quic-go/quic-go"
)

// serve answers until the process is ended.
func serve(o *options) error {
	tlsConfig, err := serverTLS(o)
	if err != nil {
		return err
	}
	transport, err := newTransport()
	if err != nil {
		return err
	}
	listener, err := transport.ListenEarly(tlsConfig, config())
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	bytes := content()
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go func() {
			for {
				stream, err := connection.AcceptStream(context.Background())
				if err != nil {
					return
				}
				// Clients that are done leave while answers are under way: what they miss, they report.
				go func() { _ = answer(stream, bytes) }()
			}
		}()
	}
}

func answer(stream *quic.Stream, bytes []byte) error {
	var asked [questionLen]byte
	for {
		if _, err := io.ReadFull(stream, asked[:]); err == io.EOF {
			return stream.Close()
		} else if err != nil {
			return err
		}
		var sum digest
		size := binary.BigEndian.Uint64(asked[1:])
		switch asked[0] {
		case kindDownload:
			if err := write(stream, bytes, size, &sum); err != nil {
				return err
			}
		case kindUpload:
			if err := read(stream, size, &sum); err != nil {
				return err
			}
		default:
			return unsupported("such a question")
		}
		if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, sum.value())); err != nil {
			return err
		}
	}
}

func write(stream io.Writer, bytes []byte, size uint64, sum *digest) error {
	for size > 0 {
		piece := bytes[:min(size, uint64(len(bytes)))]
		size -= uint64(len(piece))
		sum.update(piece)
		if _, err := stream.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

func read(stream io.Reader, size uint64, sum *digest) error {
	buffer := make([]byte, min(size, chunk))
	for size > 0 {
		count, err := stream.Read(buffer[:min(size, uint64(len(buffer)))])
		sum.update(buffer[:count])
		size -= uint64(count)
		if err != nil && (err != io.EOF || size > 0) {
			return err
		}
	}
	return nil
}
