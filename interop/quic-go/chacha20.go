package main

import (
	"crypto/tls"
	_ "unsafe" // for go:linkname
)

// crypto/tls offers no way to choose among the suites of TLS 1.3, but it lets these two lists be linked to by name.

//go:linkname suitesWithHardwareAES crypto/tls.defaultCipherSuitesTLS13
var suitesWithHardwareAES []uint16

//go:linkname suitesWithoutHardwareAES crypto/tls.defaultCipherSuitesTLS13NoAES
var suitesWithoutHardwareAES []uint16

// offerOnlyChaCha20 makes every ClientHello of this process offer TLS_CHACHA20_POLY1305_SHA256 and nothing else.
func offerOnlyChaCha20() {
	suitesWithHardwareAES = []uint16{tls.TLS_CHACHA20_POLY1305_SHA256}
	suitesWithoutHardwareAES = []uint16{tls.TLS_CHACHA20_POLY1305_SHA256}
}
