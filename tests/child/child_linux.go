// Package child lets a test do in a process of its own what cannot be undone: enter
// a domain, a mount namespace, another user. The test binary runs itself again, and
// the function that was asked for runs on its main thread.
package child

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A Func is what a child does. What it is given and what it returns is JSON.
type Func func(in []byte) (any, error)

const variable = "TEST_CHILD"

// Who calls Main has its main goroutine on the main thread, whose domain is the one
// that /proc/self shows and execve keeps.
func init() { runtime.LockOSThread() }

// Main is TestMain: it runs the tests, or in a child the function that was asked for,
// and returns the exit code.
func Main(m *testing.M, all map[string]Func) int {
	name, ok := os.LookupEnv(variable)
	if !ok {
		return m.Run()
	}
	out, err := call(all[name])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Whatever the child has entered, it may write where it stands already.
	if _, err := os.Stdout.Write(out); err != nil {
		return 1
	}
	return 0
}

func call(f Func) ([]byte, error) {
	if f == nil {
		return nil, errors.New("no such child")
	}
	var in bytes.Buffer
	if _, err := in.ReadFrom(os.Stdin); err != nil {
		return nil, err
	}
	out, err := f(in.Bytes())
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// Nobody is a user without any right.
const Nobody = 65534

// Run calls the function name in a child of user uid, gives it in and fills out. A
// child that fails fails the test. extra are open in the child from 3 on.
func Run(t *testing.T, uid int, name string, in, out any, extra ...*os.File) {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.timeout=1m")
	cmd.Env = []string{variable + "=" + name, "PATH=/usr/bin:/bin", "HOME=/root"}
	cmd.Stdin, cmd.ExtraFiles, cmd.WaitDelay = bytes.NewReader(text), extra, time.Second
	if me := os.Geteuid(); me != uid {
		if me != 0 {
			Unavailable(t, "only root can be another user")
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("child %s: %v\n%s%s", name, err, stderr.String(), stdout.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		t.Fatalf("child %s: %v\n%s", name, err, stdout.String())
	}
}

// Dir is a new directory that every user can reach and that is not below the temp
// directory, which no hidden path may freeze.
func Dir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "test-")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Thread calls f on a thread of its own, which ends with it: so does what belongs to
// a thread, as a domain does, and the capabilities.
func Thread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked
		f()
	}()
	<-done
}

// Root skips a test that only root with all capabilities can run.
func Root(t *testing.T) {
	t.Helper()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil || data[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 || os.Geteuid() != 0 {
		Unavailable(t, "needs root with CAP_SYS_ADMIN")
	}
}

// Unavailable ends a test that this machine cannot run. Where CI runs it, it must.
func Unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
