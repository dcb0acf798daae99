// Command fulmar-peer-go is a stranger for Fulmar to talk to: an HTTP/0.9 server and client over quic-go.
//
// It speaks ALPN hq-interop: the client opens a bidirectional stream, sends "GET /path\r\n" and ends the stream,
// the server answers with the bytes of the file and ends the stream. In the case http3 it speaks HTTP/3. The command line is that of the other peers,
// so that `cargo xtask interop` starts all of them alike. `extensions` is for the cases about extensions.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
)

const alpn = "hq-interop"

const usage = "usage: fulmar-peer-go server|client [options] [URL...] | extensions server|client ..."

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if os.Args[1] == "extensions" {
		if err := runExtensions(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	var report *report
	var err error
	switch role, arguments := os.Args[1], os.Args[2:]; role {
	case "server":
		report, err = runServer(arguments)
	case "client":
		report, err = runClient(arguments)
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		report.Error = err.Error()
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	line, marshalError := json.Marshal(report)
	if marshalError != nil {
		fmt.Fprintln(os.Stderr, "error:", marshalError)
		os.Exit(1)
	}
	fmt.Println(string(line))
	if err != nil {
		os.Exit(1)
	}
}

// newFlagSet gives the flags of one role; a wrong command line ends the program.
func newFlagSet(role string) *flag.FlagSet {
	return flag.NewFlagSet("fulmar-peer-go "+role, flag.ExitOnError)
}

// keyLog opens the file to which the environment wants the TLS secrets to be appended; nil for none.
func keyLog() (io.Writer, error) {
	name := os.Getenv("SSLKEYLOGFILE")
	if name == "" {
		return nil, nil
	}
	return os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// quicConfig holds what both roles set alike. The tracer writes files only where the environment names a QLOGDIR.
func quicConfig(idle time.Duration) *quic.Config {
	return &quic.Config{MaxIdleTimeout: idle, Tracer: qlog.DefaultConnectionTracer}
}
