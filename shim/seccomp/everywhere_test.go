package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

const (
	allowed   = unix.SECCOMP_RET_ALLOW
	forbidden = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
)

// entries are the ways into the kernel, with their numbers of system calls.
var entries = map[string]struct {
	arch uint32
	n    numbers
}{
	"64 bits": {auditArch, native},
	"32 bits": {auditArch32, numbers32},
}

// TestEverywhere: what is refused by the entry for 32-bit programs, too, and what of
// the same system calls stays.
func TestEverywhere(t *testing.T) {
	keyrings, limits, files, terminals := Config{NoKeyrings: true}, Config{NoLimitsOfOthers: true}, Config{NoFileIoctls: true}, Config{NoTerminalInput: true}
	for name, e := range entries {
		n := e.n
		for _, row := range []struct {
			name string
			by   Config // refuses it; the zero Config where nothing does
			nr   uint32
			args [6]uint64
		}{
			{"add_key", keyrings, uint32(n[addKey]), args()},
			{"request_key", keyrings, uint32(n[requestKey]), args(1, 2, 3, 4)},
			{"keyctl", keyrings, uint32(n[keyctl]), args(unix.KEYCTL_GET_KEYRING_ID)},
			{"a limit of another process", limits, uint32(n[prlimit]), args(1, unix.RLIMIT_CPU, 0x1000)},
			{"a limit of its own by number", limits, uint32(n[prlimit]), args(4242, unix.RLIMIT_CPU, 0x1000)},
			{"a limit at a high address", limits, uint32(n[prlimit]), args(1, unix.RLIMIT_CPU, 0x7f00_00000000)},
			{"a limit of a dirty number", limits, uint32(n[prlimit]), args(dirt|1, unix.RLIMIT_CPU, 0x1000)},
			{"its own limit", Config{}, uint32(n[prlimit]), args(0, unix.RLIMIT_CPU, 0x1000)},
			{"its own limit, dirty", Config{}, uint32(n[prlimit]), args(dirt, unix.RLIMIT_CPU, 0x1000)},
			{"asked for a limit of another", Config{}, uint32(n[prlimit]), args(1, unix.RLIMIT_CPU, 0, 0x1000)},
			{"priority of a process", Config{}, uint32(n[setpriority]), args(unix.PRIO_PROCESS, 1, 5)},
			{"priority of a group", limits, uint32(n[setpriority]), args(dirt|unix.PRIO_PGRP, 0, 5)},
			{"priority of a user", limits, uint32(n[setpriority]), args(unix.PRIO_USER, 0, 5)},
			{"I/O priority of a process", Config{}, uint32(n[ioprioSet]), args(1, 1)},
			{"I/O priority of a group", limits, uint32(n[ioprioSet]), args(2, 0)},
			{"I/O priority of a user", limits, uint32(n[ioprioSet]), args(dirt|3, 0)},
			{"SNAP_DESTROY", files, uint32(n[ioctl]), args(3, 0x5000940f)},
			{"SNAP_DESTROY, dirty", files, uint32(n[ioctl]), args(3, dirt|0x5000940f)},
			{"TIOCSTI", terminals, uint32(n[ioctl]), args(0, unix.TIOCSTI)},
		} {
			for _, c := range []Config{keyrings, limits, files, terminals, {Mark: 1}} {
				want := uint32(allowed)
				if c == row.by {
					want = forbidden
				}
				if got := run(t, c, call{e.arch, row.nr, row.args}); got != want {
					t.Errorf("%s, %s, %+v: got %#x, want %#x", name, row.name, c, got, want)
				}
			}
			// Together they are as they are alone, whatever stands around them.
			all := Config{NoTerminalInput: true, NoKeyrings: true, NoFileIoctls: true, NoLimitsOfOthers: true, Mark: 1}
			want := uint32(allowed)
			if row.by != (Config{}) {
				want = forbidden
			}
			if got := run(t, all, call{e.arch, row.nr, row.args}); got != want {
				t.Errorf("%s, %s, all: got %#x, want %#x", name, row.name, got, want)
			}
		}
	}
}

// Every number of every type: exactly those in a span are refused, whatever size and
// direction stand above.
func TestSpans(t *testing.T) {
	for name, list := range map[string]struct {
		config Config
		spans  []span
	}{
		"files":   {Config{NoFileIoctls: true, NoTerminalInput: true}, fileIoctls},
		"network": {Config{Sockets: LocalSockets}, networkIoctls},
	} {
		var last uint32
		for _, s := range list.spans {
			if s.low() <= last || s.high() < s.low() {
				t.Errorf("%s: %+v is out of order", name, s)
			}
			last = s.high()
		}
		var machine = machineOf(t, list.config)
		for number := uint32(0); number <= 0xffff; number++ {
			want := uint32(allowed)
			for _, s := range list.spans {
				if s.low() <= number && number <= s.high() {
					want = forbidden
				}
			}
			if number == unix.TIOCSTI || number == 0x541c {
				continue // TestProgram's
			}
			for _, above := range []uint64{0, 0x40180000, dirt | 0xffff0000} {
				if got := machine(call{auditArch, uint32(native[ioctl]), args(3, above|uint64(number))}); got != want {
					t.Fatalf("%s: %#x: got %#x, want %#x", name, above|uint64(number), got, want)
				}
			}
		}
	}
}
