package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type figures struct {
	Seconds      float64  `json:"seconds"`
	Amount       uint64   `json:"amount"`
	ClientCPU    float64  `json:"client_cpu_s"`
	ServerCPU    float64  `json:"server_cpu_s"`
	ClientPeakKB uint64   `json:"client_peak_kb"`
	ServerPeakKB uint64   `json:"server_peak_kb"`
	Latency      *latency `json:"latency_us,omitempty"`
	ClientBytes  *float64 `json:"client_bytes,omitempty"`
	ServerBytes  *float64 `json:"server_bytes,omitempty"`
}

type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func percentiles(nanoseconds []int64) *latency {
	if len(nanoseconds) == 0 {
		return nil
	}
	slices.Sort(nanoseconds)
	at := func(share float64) float64 { return float64(nanoseconds[int(share*float64(len(nanoseconds)-1))]) / 1e3 }
	return &latency{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// meter measures time and CPU since it was started.
type meter struct {
	pid         int
	started     time.Time
	own, server float64
}

func startMeter(pid int) *meter {
	return &meter{pid: pid, server: cpuOf(pid), own: ownCPU(), started: time.Now()}
}

func (m *meter) stop(amount uint64) *figures {
	seconds := time.Since(m.started).Seconds()
	return &figures{Seconds: seconds, Amount: amount, ClientCPU: ownCPU() - m.own, ServerCPU: cpuOf(m.pid) - m.server}
}

func ownCPU() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// cpuOf gives the seconds of CPU time of a process's threads.
func cpuOf(pid int) float64 {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	total := 0.0
	for _, thread := range threads {
		if text, err := os.ReadFile(thread); err == nil {
			if fields := strings.Fields(string(text)); len(fields) > 0 {
				nanoseconds, _ := strconv.ParseFloat(fields[0], 64)
				total += nanoseconds / 1e9
			}
		}
	}
	return total
}

// kilobytes gives a figure of /proc/PID/status; process 0 is this one.
func kilobytes(pid int, field string) uint64 {
	path := "/proc/self/status"
	if pid != 0 {
		path = fmt.Sprintf("/proc/%d/status", pid)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			if fields := strings.Fields(rest); len(fields) > 0 {
				value, _ := strconv.ParseUint(fields[0], 10, 64)
				return value
			}
		}
	}
	return 0
}
