package main

import (
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// endedMax bounds the list of reasons in a report.
const endedMax = 100

// report is the line of JSON at the end of each role.
type report struct {
	Role       string   `json:"role"`
	Handshakes int      `json:"handshakes"`
	Cipher     string   `json:"cipher_suite,omitempty"`
	Version    string   `json:"version,omitempty"`
	Offered    []string `json:"offered_suites,omitempty"`
	Bytes      int64    `json:"bytes"`
	Seconds    float64  `json:"seconds"`
	Ended      []string `json:"ended,omitempty"`
	Error      string   `json:"error,omitempty"`

	mutex   sync.Mutex
	started time.Time
}

func newReport(role string) *report {
	return &report{Role: role, started: time.Now()}
}

// handshakeDone notes a completed handshake and what it agreed on.
func (r *report) handshakeDone(state quic.ConnectionState) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Handshakes++
	r.Cipher = tls.CipherSuiteName(state.TLS.CipherSuite)
	r.Version = state.Version.String()
}

// offered notes the TLS 1.3 cipher suites of a ClientHello.
func (r *report) offered(suites []uint16) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Offered = nil
	for _, suite := range suites {
		// TLS 1.3 suites are 0x13xx, older ones and GREASE are of no interest here.
		if suite>>8 == 0x13 {
			r.Offered = append(r.Offered, tls.CipherSuiteName(suite))
		}
	}
}

func (r *report) transferred(bytes int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Bytes += bytes
}

// ended notes why a connection ended and gives the reason in words that all peers share.
func (r *report) ended(cause error) string {
	reason := endReason(cause)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.Ended) < endedMax {
		r.Ended = append(r.Ended, reason)
	}
	return reason
}

// finish stops the clock; nothing changes the report afterwards.
func (r *report) finish() *report {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Seconds = time.Since(r.started).Seconds()
	return &report{
		Role: r.Role, Handshakes: r.Handshakes, Cipher: r.Cipher, Version: r.Version, Offered: r.Offered,
		Bytes: r.Bytes, Seconds: r.Seconds, Ended: r.Ended,
	}
}

// endReason names the end of a connection; the two ends that the interop cases look for have fixed words.
func endReason(cause error) string {
	var idle *quic.IdleTimeoutError
	var reset *quic.StatelessResetError
	switch {
	case errors.As(cause, &idle):
		return "idle timeout"
	case errors.As(cause, &reset):
		return "stateless reset"
	default:
		return cause.Error()
	}
}
