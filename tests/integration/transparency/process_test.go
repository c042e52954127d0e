package transparency

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

// has checks one item, without the spaces at its ends.
func has(name, want string) func(bare.Account) error {
	return func(a bare.Account) error {
		if got := strings.TrimSpace(a.Get(name)); got != want {
			return fmt.Errorf("%s is %q, want %q", name, got, want)
		}
		return nil
	}
}

func hex(v uint64) string { return fmt.Sprintf("%016x", v) }

// processRows set everything else that execve keeps.
func processRows(t *testing.T, dir string) []row {
	t.Helper()
	processor, core := inheritedBounds(t)
	return []row{
		{
			name:   "process: umask and working directory",
			change: func(s *bare.State) { s.Umask, s.Dir = 0o137, dir },
			check: func(a bare.Account) error {
				if err := has("cwd", dir+"\x00")(a); err != nil {
					return err
				}
				return has("umask", hex(0o137))(a)
			},
		},
		{
			name:   "process: nice",
			change: func(s *bare.State) { s.Nice = 19 }, // may be set from any other
			check:  has("nice", hex(20-19)),
		},
		{
			name:   "process: batch scheduler on one processor",
			change: func(s *bare.State) { s.Scheduler, s.Affinity = unix.SCHED_BATCH, 1<<processor },
			check:  has("scheduler", hex(unix.SCHED_BATCH)),
		},
		{
			name:   "process: idle scheduler, reset on fork",
			change: func(s *bare.State) { s.Scheduler = unix.SCHED_IDLE | 0x40000000 },
			check:  has("scheduler", hex(unix.SCHED_IDLE|0x40000000)),
		},
		{
			name:   "process: timer slack",
			change: func(s *bare.State) { s.Timerslack = 123456 },
			check:  has("timer slack", hex(123456)),
		},
		{
			name:   "process: personality",
			change: func(s *bare.State) { s.Personality = 0x0040000 | 0x0200000 }, // ADDR_NO_RANDOMIZE, ADDR_COMPAT_LAYOUT
			check:  has("personality", "00240000"),
		},
		{
			name:   "process: interval timers",
			change: func(s *bare.State) { s.TimerReal, s.TimerVirtual, s.TimerProf = 36000, 72000, 90000 },
			check: func(a bare.Account) error {
				if v := timer(a.Get("interval timer")); v != "interval 7200.000000, 20 half hours" {
					return fmt.Errorf("timer is %s", v)
				}
				return nil
			},
		},
		{
			name:   "process: limits of open files",
			change: func(s *bare.State) { s.NoFileSoft, s.NoFileHard = 64, 128 },
			check: func(a bare.Account) error {
				if want := fmt.Sprintf("Max open files            %-20d %-20d", 64, 128); !strings.Contains(a.Get("limits"), want) {
					return fmt.Errorf("limits are %q", a.Get("limits"))
				}
				return nil
			},
		},
		{
			name: "process: few open files, core size",
			change: func(s *bare.State) {
				s.NoFileSoft, s.NoFileHard, s.CoreSoft, s.CoreHard = 24, 24, min(core, 4096), min(core, 8192)
			},
			check: func(a bare.Account) error {
				if want := fmt.Sprintf("Max core file size        %-20d %-20d", min(core, 4096), min(core, 8192)); !strings.Contains(a.Get("limits"), want) {
					return fmt.Errorf("limits are %q", a.Get("limits"))
				}
				return nil
			},
		},
		{
			name:   "process: parent-death signal",
			change: func(s *bare.State) { s.DeathSignal = uint64(syscall.SIGURG) },
			check:  has("parent-death signal", hex(uint64(syscall.SIGURG))),
		},
		{
			name:   "process: subreaper, no huge pages, oom score",
			change: func(s *bare.State) { s.Subreaper, s.HugePageDisabled, s.OOMScoreAdj = 1, 1, 321 },
			check: func(a bare.Account) error {
				if err := has("subreaper", hex(1))(a); err != nil {
					return err
				}
				return has("oom_score_adj", "321")(a)
			},
		},
		{
			name:   "process: a group of its own",
			change: func(s *bare.State) { s.Session = bare.SessionGroup },
		},
		{
			name:   "process: a session of its own",
			change: func(s *bare.State) { s.Session = bare.SessionNew },
			check: func(a bare.Account) error {
				if sid := strings.TrimSpace(a.Get("sid")); sid != hex(number(a.Status("Pid"))) {
					return fmt.Errorf("sid is %s", sid)
				}
				return nil
			},
		},
		{
			name:   "process: a session keyring",
			change: func(s *bare.State) { s.Keyring = "shim-test" },
			check: func(a bare.Account) error {
				if !strings.Contains(a.Get("keyring description"), "shim-test") {
					return fmt.Errorf("the session keyring is %q", a.Get("keyring description"))
				}
				return nil
			},
		},
		{
			name:   "process: no new privileges",
			change: func(s *bare.State) { s.NoNewPrivs = 1 },
			check:  has("no new privileges", hex(1)),
		},
		{
			name: "process: securebits",
			root: true,
			change: func(s *bare.State) {
				s.Securebits = 1<<2 | 1<<6 // SECBIT_NO_SETUID_FIXUP, SECBIT_NO_CAP_AMBIENT_RAISE
			},
			check: has("securebits", hex(1<<2|1<<6)),
		},
		{
			name: "process: a user with ambient capabilities",
			root: true,
			change: func(s *bare.State) {
				s.UID, s.Ambient = 65534, 1<<unix.CAP_NET_BIND_SERVICE|1<<unix.CAP_NET_RAW|1<<unix.CAP_SYS_NICE
			},
			check: func(a bare.Account) error {
				if got, want := a.Status("CapAmb"), hex(1<<unix.CAP_NET_BIND_SERVICE|1<<unix.CAP_NET_RAW|1<<unix.CAP_SYS_NICE); got != want {
					return fmt.Errorf("CapAmb is %s, want %s", got, want)
				}
				return nil
			},
		},
	}
}

// inheritedBounds returns a processor that the tests may run on, and the hard
// limit of a core dump: who runs them may have taken either.
func inheritedBounds(t *testing.T) (processor int, core uint64) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for !set.IsSet(processor) {
		processor++
	}
	var lim unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &lim); err != nil {
		t.Fatal(err)
	}
	return processor, lim.Max
}

// terminalRow has a controlling terminal. The terminal stays the same from start
// to start: the test keeps its other end.
func terminalRow(t *testing.T) row {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	return row{
		name:   "process: a controlling terminal",
		change: func(s *bare.State) { s.Session = bare.SessionTerminal },
		files: func(tb testing.TB, u launch.User) []*os.File {
			tb.Helper()
			f, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
			if err != nil {
				tb.Fatal(err)
			}
			return []*os.File{f}
		},
		check: func(a bare.Account) error {
			f, err := facts(a)
			if err != nil {
				return err
			}
			for _, f := range f {
				if f.key == "stat/tty_nr" && f.value == "0" {
					return fmt.Errorf("no controlling terminal")
				}
			}
			return nil
		},
	}
}
