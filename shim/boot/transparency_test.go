//go:build linux && (amd64 || arm64)

package boot_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sameAsDirect runs a program directly and both ways through a shim, and
// compares everything that comes out, in the form that the filter gives it.
func sameAsDirect(t *testing.T, s state, stdin string, filter ...func(string) string) result {
	t.Helper()
	run := func(s state) result {
		cmd := command(t, s)
		cmd.Stdin = strings.NewReader(stdin)
		r := finish(t, cmd)
		for _, f := range filter {
			r.Stdout = f(r.Stdout)
		}
		return r
	}
	want := run(s)
	for _, w := range ways() {
		if diff := cmp.Diff(want, run(w.through(t, s))); diff != "" {
			t.Errorf("%s (-direct +shim):\n%s", w.name, diff)
		}
	}
	return want
}

var stableLines = regexp.MustCompile(`(?m)^(Name|Umask|Uid|Gid|Groups|NoNewPrivs|Seccomp|Cap\w+|Threads|Sig[A-Z][a-z][a-z]|ShdPnd|Cpus_allowed|CoreDumping|THP_enabled):.*\n`)

// stable keeps the lines of /proc/self/status that two runs have in common.
func stable(status string) string {
	return strings.Join(stableLines.FindAllString(status, -1), "")
}

func TestSignalStateIsExact(t *testing.T) {
	t.Parallel()
	all := make([]int, 64)
	for i := range all {
		all[i] = i + 1
	}
	sets := []struct {
		name          string
		ignore, block []int
	}{
		{"nothing", nil, nil},
		{"everything ignored", all, nil},
		{"everything blocked", nil, all},
		{"everything ignored and blocked", all, all},
		{"ignored by shells", []int{1, 2, 3, 10, 13, 14, 15, 17, 20, 22}, nil},
		{"faults", []int{7, 11}, []int{8, 11}},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		var ignore, block []int
		for s := 1; s <= 64; s++ {
			if random.IntN(3) == 0 {
				ignore = append(ignore, s)
			}
			if random.IntN(3) == 0 {
				block = append(block, s)
			}
		}
		sets = append(sets, struct {
			name          string
			ignore, block []int
		}{fmt.Sprintf("random %d", i), ignore, block})
	}
	for _, set := range sets {
		t.Run(set.name, func(t *testing.T) {
			direct := sameAsDirect(t, state{
				Path: "/bin/cat", Argv: byteSlices("cat", "/proc/self/status"),
				Ignore: set.ignore, Block: set.block,
			}, "", stable)
			const unchangeable = 1<<(syscall.SIGKILL-1) | 1<<(syscall.SIGSTOP-1)
			if got, want := signals(t, direct.Stdout, "SigIgn"), mask(set.ignore)&^unchangeable; got != want {
				t.Errorf("the launcher itself gave SigIgn %x, want %x", got, want)
			}
			if got, want := signals(t, direct.Stdout, "SigBlk"), mask(set.block)&^unchangeable; got != want {
				t.Errorf("the launcher itself gave SigBlk %x, want %x", got, want)
			}
		})
	}
}

func mask(list []int) uint64 {
	var m uint64
	for _, s := range list {
		m |= 1 << (s - 1)
	}
	return m
}

func TestClosedDescriptorsStayClosed(t *testing.T) {
	t.Parallel()
	for set := range 8 {
		t.Run(fmt.Sprintf("%03b", set), func(t *testing.T) {
			var closed []int
			for fd := range 3 {
				if set&(1<<fd) != 0 {
					closed = append(closed, fd)
				}
			}
			run := func(s state) string {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				cmd := command(t, s)
				cmd.ExtraFiles = []*os.File{w}
				done := make(chan string)
				go func() {
					b := make([]byte, 1<<12)
					n, _ := r.Read(b)
					done <- string(b[:n])
				}()
				got := finish(t, cmd)
				w.Close()
				if got.Exit != 0 {
					t.Errorf("%+v", got)
				}
				return <-done
			}
			// One write: the descriptors that are open, and the flags of each.
			const script = `o=; for i in 0 1 2 3 4 5 6 7 8; do
				if [ -h /proc/$$/fd/$i ]; then o="$o $i"; fi; done; echo "$o" >&3`
			s := state{Path: "/bin/sh", Argv: byteSlices("sh", "-c", script), Close: closed}
			want := run(s)
			if strings.Contains(want, "0") == (set&1 != 0) {
				t.Fatalf("the launcher itself left %q open", want)
			}
			for _, w := range ways() {
				if got := run(w.through(t, s)); got != want {
					t.Errorf("%s: open are %q, want %q", w.name, got, want)
				}
			}
		})
	}
}

// Where there is no /dev/null, the runtime would die of a closed descriptor.
func TestClosedDescriptorWithoutDevNull(t *testing.T) {
	if os.Getuid() != 0 {
		unavailable(t, "chroot needs root")
	}
	t.Parallel()
	cmd := command(t, state{
		Path: "/runner", Argv: byteSlices("runner"), Close: []int{0, 2},
		Env: byteSlices("BOOT_TEST_STEP=describe"),
	})
	root := t.TempDir()
	for name, file := range map[string]string{"/runner": runner, "/launcher": launcher, "/state": cmd.Args[1]} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		writeExecutable(t, root+name, text)
	}
	cmd.Path, cmd.Args = "/launcher", []string{"launcher", "/state"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	got := finish(t, cmd)
	if got.Exit != 0 || !strings.Contains(got.Stdout, "closed=[true false true]") {
		t.Errorf("got %+v", got)
	}
}

func TestEnvironmentIsExact(t *testing.T) {
	t.Parallel()
	many := make([]string, 10000)
	for i := range many {
		many[i] = fmt.Sprintf("V%d=%d", i, i*i)
	}
	for _, test := range []struct {
		name string
		env  []string
	}{
		{"empty", nil},
		{"one", []string{"A=1"}},
		{"ten thousand", many},
		{"odd entries", []string{"A=1", "B=2", "A=3", "NOEQ", "", "=x", "==", "", "A=1", "SANDBOX_EXEC_SHIM_POLIC=x", "SANDBOX_EXEC_SHIM_POLICY", "SANDBOX_EXEC_SHIM_POLICY2=y"}},
		{"not UTF-8", []string{"A=\xff\xfe\x80", "\xc3\x28=1", "N=a\nb\tc\x01"}},
		{"a long value", []string{"A=1", "L=" + strings.Repeat("x", 128<<10-3), "B=2"}},
		{"the runtime's own", []string{"GOMEMLIMIT=foo", "GODEBUG=inittrace=1,schedtrace=1", "GOGC=off", "GOMAXPROCS=0", "GOTRACEBACK=crash", "GOMEMLIMIT=bar", "GO", "GO=", "_=/x"}},
		{"many of the runtime's", strings.Split(strings.Repeat("GODEBUG=inittrace=1,", 2000)+"GOMEMLIMIT=x", ",")},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := state{Path: "/bin/cat", Argv: byteSlices("cat", "/proc/self/environ"), Env: byteSlices(test.env...)}
			want := ""
			for _, e := range test.env {
				want += e + "\x00"
			}
			if direct := sameAsDirect(t, s, ""); direct.Stdout != want || direct.Stderr != "" {
				t.Errorf("the launcher itself gave %+v", direct)
			}
		})
	}
}

func TestArgumentsAreExact(t *testing.T) {
	t.Parallel()
	const script = `cat /proc/$$/cmdline; cat /proc/$$/comm`
	for _, test := range []struct {
		name string
		argv []string
	}{
		{"usual", []string{"sh", "-c", script, "a", "b"}},
		{"empty and odd", []string{"", "-c", script, "", "--", "-", "\n", "a b", "\xff\xfe", "--help", "-version", ""}},
		{"login name", []string{"-sh", "-c", script}},
		{"path as name", []string{"/some/where/sh", "-c", script}},
		{"long", []string{"sh", "-c", script, strings.Repeat("y", 128<<10-1)}},
		{"many", append([]string{"sh", "-c", script}, many(20000)...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := strings.Join(test.argv, "\x00") + "\x00" + "sh\n"
			s := state{Path: "/bin/sh", Argv: byteSlices(test.argv...), Env: byteSlices("PATH=/usr/bin:/bin")}
			if direct := sameAsDirect(t, s, ""); direct.Stdout != want {
				t.Errorf("the launcher itself gave %+v", direct)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		s := state{Path: "/bin/sh", Env: byteSlices("PATH=/usr/bin:/bin")}
		direct := sameAsDirect(t, s, script+"; echo $#; exit 37")
		if direct.Exit != 37 || !strings.HasPrefix(direct.Stdout, "\x00") {
			t.Errorf("the launcher itself gave %+v", direct)
		}
	})
}

func many(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return list
}

func TestLimitsAreExact(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		soft, hard uint64
	}{
		{"soft below hard", 256, 4096},
		{"equal", 300, 300},
		{"few", 5, 64},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := state{
				Path: "/bin/cat", Argv: byteSlices("cat", "/proc/self/limits"),
				Limits: map[int][2]uint64{syscall.RLIMIT_NOFILE: {test.soft, test.hard}, syscall.RLIMIT_CORE: {1, 2}},
			}
			direct := sameAsDirect(t, s, "")
			if want := fmt.Sprintf("Max open files            %-20d %-20d", test.soft, test.hard); !strings.Contains(direct.Stdout, want) {
				t.Errorf("the launcher itself gave %q", direct.Stdout)
			}
		})
	}
}

// The shim itself may open as many files as the hard limit allows.
func TestOpenFilesOfTheShim(t *testing.T) {
	t.Parallel()
	for _, limit := range [][2]uint64{{3, 4}, {3, 64}, {4, 4}, {5, 5}, {256, 4096}, {300, 300}} {
		s := state{
			Path: runner, Argv: byteSlices("runner"), Env: byteSlices("BOOT_TEST_STEP=limit"),
			Limits: map[int][2]uint64{syscall.RLIMIT_NOFILE: limit},
		}
		got := finish(t, command(t, s))
		if want := fmt.Sprintln(limit[1], limit[1], nil); got.Stdout != want {
			t.Errorf("%d: %+v, want %q", limit, got, want)
		}
	}
}

// The runtime opens nothing while it starts.
func TestRuntimeOpensNothing(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("strace is missing")
		}
		t.Skip("strace is missing")
	}
	calls := func(program string, env ...string) (before, after int) {
		file := filepath.Join(t.TempDir(), "calls")
		cmd := exec.Command(strace, "-f", "-o", file, "-e", "trace=open,openat,execve", program)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		execs := 0
		for line := range strings.Lines(string(text)) {
			switch {
			case strings.Contains(line, "execve("):
				execs++
			case strings.Contains(line, "open") && !strings.Contains(line, " = -1 "):
				if execs == 1 {
					before++
				} else {
					after++
				}
			}
		}
		return before, after
	}
	if before, after := calls(runner, "BOOT_TEST_TARGET=/bin/true"); before != 0 || after == 0 {
		t.Errorf("%d files opened before execve, %d after it", before, after)
	}
	if before, _ := calls(probe); before == 0 {
		t.Error("a runtime without the entry point opens nothing either")
	}
}

func TestExitStatusPassesThrough(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		script string
		want   result
	}{
		{"exit 37", result{Exit: 37}},
		{"kill -TERM $$", result{Exit: -1, Signal: syscall.SIGTERM}},
		{"kill -QUIT $$", result{Exit: -1, Signal: syscall.SIGQUIT}},
		{"kill -SEGV $$", result{Exit: -1, Signal: syscall.SIGSEGV}},
	} {
		direct := sameAsDirect(t, state{Path: "/bin/sh", Argv: byteSlices("sh", "-c", test.script)}, "")
		if direct != test.want {
			t.Errorf("%s: the launcher itself gave %+v", test.script, direct)
		}
	}
}
