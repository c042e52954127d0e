package transparency

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

// A row is one state of the caller. change gets a plain state and makes it
// special.
type row struct {
	name   string
	root   bool // only for root
	change func(*bare.State)
	// files are descriptors 3 and up, opened anew for each start.
	files func(testing.TB, launch.User) []*os.File
	// check holds that the state was really handed over, by what a program
	// that was started directly finds.
	check func(bare.Account) error
}

const everySignal = ^bare.Signals(0)

// unchangeable are SIGKILL and SIGSTOP.
var unchangeable = bare.Set(syscall.SIGKILL, syscall.SIGSTOP)

func signalRow(name string, ignore, block bare.Signals) row {
	return row{
		name:   name,
		change: func(s *bare.State) { s.Ignore, s.Block = ignore, block },
		check: func(a bare.Account) error {
			for field, want := range map[string]bare.Signals{"SigIgn": ignore, "SigBlk": block} {
				if got := a.Status(field); got != fmt.Sprintf("%016x", uint64(want&^unchangeable)) {
					return fmt.Errorf("%s is %s, want %016x", field, got, uint64(want&^unchangeable))
				}
			}
			return nil
		},
	}
}

// signalRows are callers that ignore, block, or both.
func signalRows(r *rand.Rand) []row {
	shells := bare.Set(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGTSTP,
		syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCHLD, syscall.SIGUSR1, syscall.SIGALRM)
	faults := bare.Set(syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGSYS)
	realtime := everySignal >> 31 << 31
	rows := []row{
		signalRow("signals: nothing", 0, 0),
		signalRow("signals: PIPE ignored", bare.Set(syscall.SIGPIPE), 0),
		signalRow("signals: INT and QUIT ignored", bare.Set(syscall.SIGINT, syscall.SIGQUIT), 0),
		signalRow("signals: ignored by shells", shells, 0),
		signalRow("signals: blocked by shells", 0, shells),
		signalRow("signals: URG and CHLD both", bare.Set(syscall.SIGURG, syscall.SIGCHLD), bare.Set(syscall.SIGURG, syscall.SIGCHLD)),
		signalRow("signals: faults ignored", faults, 0),
		signalRow("signals: faults blocked", 0, faults),
		signalRow("signals: realtime ignored", realtime, 0),
		signalRow("signals: realtime blocked", 0, realtime),
		signalRow("signals: all ignored", everySignal, 0),
		signalRow("signals: all blocked", 0, everySignal),
		signalRow("signals: all ignored and blocked", everySignal, everySignal),
	}
	for i := range 24 {
		rows = append(rows, signalRow(fmt.Sprintf("signals: random set %d", i), bare.RandomSet(r), bare.RandomSet(r)))
	}
	return rows
}

// stopping are signals that no process can leave pending for a test: two cannot
// be blocked, and SIGCONT removes the four that stop.
var stopping = unchangeable | bare.Set(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)

func pendingRows() []row {
	some := bare.Set(syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGCHLD, syscall.SIGALRM, syscall.SIGQUIT, syscall.SIGURG, 40)
	all := everySignal &^ stopping
	check := func(process, thread bare.Signals) func(bare.Account) error {
		return func(a bare.Account) error {
			for field, want := range map[string]bare.Signals{"ShdPnd": process, "SigPnd": thread} {
				if got := a.Status(field); got != fmt.Sprintf("%016x", uint64(want)) {
					return fmt.Errorf("%s is %s, want %016x", field, got, uint64(want))
				}
			}
			return nil
		}
	}
	return []row{
		{
			name:   "pending: some, for the process",
			change: func(s *bare.State) { s.Block, s.PendingProcess = some, some },
			check:  check(some, 0),
		},
		{
			name:   "pending: some, for the thread",
			change: func(s *bare.State) { s.Block, s.PendingThread = some, some },
			check:  check(0, some),
		},
		{
			name:   "pending: all, for both",
			change: func(s *bare.State) { s.Block, s.PendingProcess, s.PendingThread = all, all, all },
			check:  check(all, all),
		},
		{
			name: "pending: ignored and blocked, for the process",
			change: func(s *bare.State) {
				s.Ignore, s.Block, s.PendingProcess = all, all, all
			},
			check: check(all, 0),
		},
		{
			name: "pending: ignored and blocked, for the thread",
			change: func(s *bare.State) {
				s.Ignore, s.Block, s.PendingThread = all, all, all
			},
			check: check(0, all),
		},
		{
			name: "pending: ignored and blocked, for both",
			change: func(s *bare.State) {
				s.Ignore, s.Block, s.PendingProcess, s.PendingThread = all, all, all, all
			},
			check: check(all, all),
		},
	}
}

// descriptorRows have all combinations of closed standard descriptors.
func descriptorRows() []row {
	var rows []row
	for set := range uint64(8) {
		rows = append(rows, row{
			name:   fmt.Sprintf("descriptors: closed %03b", set),
			change: func(s *bare.State) { s.Close = set },
			check: func(a bare.Account) error {
				open := a.Get("descriptors")
				for fd := range 3 {
					if is, want := strings.Contains(open, fmt.Sprintf("%016x 0000000000000000 ", fd)), set>>fd&1 == 0; is != want {
						return fmt.Errorf("descriptor %d open: %v", fd, is)
					}
				}
				return nil
			},
		})
	}
	rows = append(rows, row{
		name:   "descriptors: many, with offsets and flags",
		change: func(s *bare.State) { s.Close = 1 << 1 },
		files:  manyFiles,
		check: func(a bare.Account) error {
			if n := strings.Count(a.Get("descriptors"), "\n"); n != 2+5 {
				return fmt.Errorf("%d descriptors", n)
			}
			return nil
		},
	})
	return rows
}

// manyFiles are a file with an offset, a pipe that does not block, nothing, a
// directory, an appending file, and a file without a name.
func manyFiles(tb testing.TB, u launch.User) []*os.File {
	tb.Helper()
	try := func(f *os.File, err error) *os.File {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { f.Close() })
		return f
	}
	at := try(os.Open("/etc/passwd"))
	if _, err := at.Seek(7, 0); err != nil {
		tb.Fatal(err)
	}
	append1 := try(os.OpenFile("/dev/null", os.O_APPEND|os.O_WRONLY, 0))
	fd, err := unix.Eventfd(3, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	event := try(os.NewFile(uintptr(fd), "event"), err)
	return []*os.File{at, event, nil, try(os.Open("/usr/bin")), append1, try(os.Open("/dev/zero"))}
}

func environmentRows() []row {
	many := make([]string, 10000)
	for i := range many {
		many[i] = fmt.Sprintf("V%d=%d", i, i*i)
	}
	const limit = 128 << 10 // of one string, with its NUL (MAX_ARG_STRLEN)
	var rows []row
	for _, e := range []struct {
		name string
		env  []string
	}{
		{"none", nil},
		{"one", []string{"A=1"}},
		{"ten thousand", many},
		{"duplicates", []string{"A=1", "B=2", "A=3", "A=1", "B=", "PATH=/a", "PATH=/b"}},
		{"empty strings", []string{"", "A=1", "", "", "B=2", ""}},
		{"without =", []string{"NOEQ", "=x", "=", "==", "A", "SANDBOX_EXEC_SHIM_POLICY", "SANDBOX_EXEC_SHIM_POLIC=x", "SANDBOX_EXEC_SHIM_POLICY2=y"}},
		{"not UTF-8", []string{"A=\xff\xfe\x80", "\xc3\x28=1", "N=a\nb\tc\x01\x7f", "\xf0\x9f=\xed\xa0\x80"}},
		{"just under 128 KiB", []string{"A=1", "L=" + strings.Repeat("x", limit-1-2), "B=2"}},
		{"the runtime's", []string{"GOMEMLIMIT=foo", "GODEBUG=inittrace=1,schedtrace=1", "GOGC=off", "GOMAXPROCS=1", "GOTRACEBACK=crash", "GODEBUG=http2client=0", "_=/x"}},
		{"the loader's and the locale's", []string{"LD_PRELOAD=" + launch.Nowhere, "LD_LIBRARY_PATH=x", "LC_CTYPE=C", "LC_ALL=xx_YY", "TMPDIR=" + launch.Nowhere, "HOME=", "IFS= "}},
	} {
		rows = append(rows, row{
			name:   "environment: " + e.name,
			change: func(s *bare.State) { s.Env = e.env },
			check: func(a bare.Account) error {
				want := ""
				for _, s := range e.env {
					want += s + "\x00"
				}
				if a.Get("environ") != want || a.Get("envp") != want {
					return fmt.Errorf("environ is %s", shorten(a.Get("environ")))
				}
				return nil
			},
		})
	}
	return rows
}

func argumentRows() []row {
	var rows []row
	many := make([]string, 10000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, e := range []struct {
		name  string
		first string
		more  []string
	}{
		{"odd", "", []string{"", "--", "-", "\n", "a b", "\xff\xfe", "--help", "--version", ""}},
		{"login name", "-witness", nil},
		{"a path as name", "/some/where/else", []string{"x"}},
		{"long", "witness", []string{strings.Repeat("y", 128<<10-1)}},
		{"many", "witness", many},
	} {
		rows = append(rows, row{
			name: "arguments: " + e.name,
			// The second one is where the witness writes.
			change: func(s *bare.State) { s.Argv = append([]string{e.first, s.Argv[1]}, e.more...) },
			check: func(a bare.Account) error {
				got := strings.Split(a.Get("argv"), "\x00")
				if len(got) != 2+len(e.more)+1 || got[0] != e.first {
					return fmt.Errorf("argv is %s", shorten(a.Get("argv")))
				}
				return nil
			},
		})
	}
	return rows
}
