//go:build linux && (amd64 || arm64)

package boot_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
)

func TestSecureReason(t *testing.T) {
	if os.Getuid() != 0 {
		unavailable(t, "files with privileges need root")
	}
	t.Parallel()
	text, err := os.ReadFile(runner)
	if err != nil {
		t.Fatal(err)
	}
	// capget(2): version 2 with the effective bit, CAP_NET_BIND_SERVICE permitted.
	capabilities := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, test := range []struct {
		name string
		do   func(file string) error
		want string // for a caller with uid and gid 65534
		file string // for the file alone
	}{
		{"plain", func(string) error { return nil }, "", ""},
		{"setuid", func(f string) error { return os.Chmod(f, 0o755|os.ModeSetuid) }, "user id 65534 and effective user id 0 differ", "this file is setuid"},
		{"setgid", func(f string) error { return os.Chmod(f, 0o755|os.ModeSetgid) }, "group id 65534 and effective group id 0 differ", "this file is setgid"},
		{"capabilities", func(f string) error { return syscall.Setxattr(f, "security.capability", capabilities, 0) }, "this file has capabilities", "this file has capabilities"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tmp, err := os.MkdirTemp(dir, "secure")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(tmp, 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(tmp, "shim")
			writeExecutable(t, file, text)
			if err := test.do(file); err != nil {
				unavailable(t, err.Error())
			}
			s := state{Path: file, Argv: byteSlices("x"), Env: byteSlices("BOOT_TEST_STEP=secure"), UID: 65534}
			if got := finish(t, command(t, s)); got.Exit != 0 || got.Stdout != test.want+"\n" {
				t.Errorf("%+v, want %q", got, test.want)
			}
			if got := boot.Privileged(file); got != test.file {
				t.Errorf("the file: %q, want %q", got, test.file)
			}
		})
	}
	if got := boot.Privileged(filepath.Join(dir, "missing")); !strings.Contains(got, "cannot be looked at") {
		t.Errorf("a missing file: %q", got)
	}
}
