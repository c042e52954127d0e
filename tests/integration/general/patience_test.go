package general_test

import (
	"bufio"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestHangingReportCanBeInterrupted hangs a launch in the writing of its report, into a pipe that
// is full. Before the ten seconds are over a signal waits for the program;
// after them the launch says what it waits for and the signal ends it.
func TestHangingReportCanBeInterrupted(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		t.Parallel()
		p := newPlace(t, u)
		report, fill := fullPipe(t)
		defer report.Close()
		words, stderr, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer words.Close()

		c := p.sh("exit 3", p.policy(object{"report": "fd:3"}))
		c.Extra = []*os.File{fill}
		c.Stderr = stderr
		proc := c.Start(t)
		stderr.Close()
		fill.Close()
		line, err := bufio.NewReader(words).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "sandbox-exec-shim: ") || !strings.HasSuffix(line, ": still waiting: writing the report\n") {
			t.Errorf("said %q (%v)", line, err)
		}
		proc.Kill(t, syscall.SIGTERM)
		if r := proc.Wait(t); r.Signal != syscall.SIGTERM {
			t.Errorf("ended by %v", r)
		}
	})
}

// fullPipe returns both ends of a pipe that takes no byte more.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	size, err := unix.FcntlInt(uintptr(fds[1]), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Write(fds[1], make([]byte, size)); err != nil || n != size {
		t.Fatal(n, err)
	}
	return os.NewFile(uintptr(fds[0]), "read"), os.NewFile(uintptr(fds[1]), "write")
}
