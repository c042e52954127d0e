package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/policies"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// A stage is where a probe has its files: a copy of the shim under the target's
// name, and the helper that stands for the real program, under the same name in
// another directory. Nothing of an installed shim is changed.
type stage struct {
	dir    string
	shim   string // the copy
	helper string
	report string
	rec    record.Record
	// real is the program that the installed shim stands for, "" without one.
	real string
}

// tempDir makes a directory beneath parent, or where probes go for "".
func tempDir(parent string) (string, error) {
	if parent == "" {
		parent = "/var/tmp"
	}
	dir, err := os.MkdirTemp(parent, "install-shim-probe-")
	if err != nil {
		return "", voice.Hinted(fmt.Errorf("make a directory: %w", err), "name another place with --dir")
	}
	return dir, nil
}

// newStage copies the shim at src. The name decides which templates of a
// profile apply.
func newStage(parent, name string, src shims.File) (_ *stage, err error) {
	dir, err := tempDir(parent)
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, real: src.Record.Real, rec: src.Record}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()
	// Beneath a symbolic link nothing could be told apart from it.
	if s.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	s.shim, s.helper, s.report = s.dir+"/shim/"+name, s.dir+"/real/"+name, s.dir+"/report"
	for _, d := range []string{"shim", "real", "links"} {
		if err := os.Mkdir(s.dir+"/"+d, 0o700); err != nil {
			return nil, err
		}
	}
	s.rec.Real, s.rec.Report, s.rec.InPlace, s.rec.Log = s.helper, s.report, false, ""
	patched, err := record.Patch(src.Data, s.rec)
	if err != nil {
		return nil, fmt.Errorf("copy the shim: %w", err)
	}
	if err := os.WriteFile(s.shim, patched, 0o700); err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("copy the helper: %w", err)
	}
	return s, os.WriteFile(s.helper, own, 0o700)
}

func (s *stage) remove() { _ = os.RemoveAll(s.dir) }

// A launchError says that the shim did not become the helper.
type launchError struct{ stderr, why string }

func (e *launchError) Error() string {
	text := "the shim did not start the target: " + e.why
	if e.stderr != "" {
		text += ": " + strings.ReplaceAll(strings.TrimSpace(e.stderr), "\n", " / ")
	}
	return text
}

// A visit is one launch: the policy, what the target gets, and what it tries.
type visit struct {
	policy  string
	args    []string
	env     []string
	tries   []try
	files   []*os.File // descriptors 3, 4, …
	timeout time.Duration
}

// launch starts the shim and returns what the helper found, and the report.
func (s *stage) launch(ctx context.Context, v visit) ([]outcome, report.Report, error) {
	var r report.Report
	if err := os.Remove(s.report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, r, err
	}
	in, err := json.Marshal(voice.Listed(v.tries))
	if err != nil {
		return nil, r, err
	}
	variable := s.rec.PolicyEnv
	if variable == "" {
		variable = rules.DefaultPolicyEnv
	}
	text := v.policy
	if len(variable)+1+len(text) >= policies.MaxString {
		text = "@" + s.dir + "/policy"
		if err := os.WriteFile(s.dir+"/policy", []byte(v.policy), 0o600); err != nil {
			return nil, r, err
		}
	}
	var stdout, stderr bytes.Buffer
	err = runCommand(ctx, v.timeout, s.shim, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{filepath.Base(s.shim)}, v.args...)
		cmd.Env = append(slices.Clone(v.env), HelperEnv+"=1", variable+"="+text)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
		cmd.ExtraFiles = v.files
	})
	switch {
	case errors.Is(err, errInterrupted):
		return nil, r, err
	case errors.Is(err, context.DeadlineExceeded):
		return nil, r, &launchError{stderr.String(), fmt.Sprintf("it did not end within %v", v.timeout)}
	case err != nil:
		return nil, r, &launchError{stderr.String(), err.Error()}
	}
	var outcomes []outcome
	if err := json.Unmarshal(stdout.Bytes(), &outcomes); err != nil || len(outcomes) != len(v.tries) {
		return nil, r, &launchError{stderr.String(), "the helper did not answer"}
	}
	all, err := readReports(s.report)
	if err != nil {
		return nil, r, &launchError{stderr.String(), "no launch report: " + err.Error()}
	}
	return outcomes, all[len(all)-1], nil
}

// runCommand runs a program with its children in a process group of their own: a
// terminal's signals are for this process, which then cleans up.
func runCommand(ctx context.Context, timeout time.Duration, name string, with func(*exec.Cmd)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name)
	with(cmd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err()
	case ctx.Err() != nil:
		return errInterrupted
	}
	return err
}

// errInterrupted ends a probe that was told to stop, after it cleaned up.
var errInterrupted = errors.New("interrupted")

// readReports reads a file of reports, of which there is at least one.
func readReports(path string) ([]report.Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, voice.Bare(err)
	}
	var all []report.Report
	for line := range bytes.Lines(text) {
		var r report.Report
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if all == nil {
		return nil, errors.New("is empty")
	}
	return all, nil
}
