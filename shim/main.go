//go:build linux

package shim

import (
	"errors"
	"fmt"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/output"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// Main makes the launch of this process and returns an exit code when the
// program was not started. A panic is a bug of the shim, and the program is not
// started after one.
func Main(version string) (code int) {
	defer func() {
		if v := recover(); v != nil {
			output.Say("bug", fmt.Sprint(v))
			code = exitShim
		}
	}()
	c := &Call{
		Entered: boot.Entered(),
		Argv:    boot.Argv(), Envp: boot.Envp(), ExecFn: boot.ExecFn(),
		Privileged: boot.SecureReason(),
		Version:    version,
		Closed:     boot.ClosedAtStart(),
		Exec:       boot.Exec,
		Unblock:    boot.UnblockSignals,
	}
	r, ok, err := record.Decode(boot.RecordBlock())
	switch {
	case err != nil && !errors.Is(err, record.ErrNoShim):
		c.RecordErr = err
	case ok:
		c.Record = r
	}
	return Run(c)
}
