package main

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

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// A probeStage is where a probe has its files: a copy of the shim under the target's
// name, and the helper that stands for the real program, under the same name in
// another directory. Nothing of an installed shim is changed.
type probeStage struct {
	dir    string
	shim   string // the copy
	helper string
	report string
	rec    record.Record
	// from is the shim that was copied.
	from string
	// real is the program that the installed shim stands for, "" without one.
	real string
}

// newProbeStage copies the shim at src. The name decides which templates of a
// profile apply.
func newProbeStage(parent, name string, src *source, rec record.Record) (_ *probeStage, err error) {
	if parent == "" {
		parent = "/var/tmp"
	}
	dir, err := os.MkdirTemp(parent, "install-shim-probe-")
	if err != nil {
		return nil, &hinted{fmt.Errorf("make a directory: %w", err), "name another place with --dir"}
	}
	s := &probeStage{dir: dir, from: src.path, real: rec.Real, rec: rec}
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
	patched, err := record.Patch(src.data, s.rec)
	if err != nil {
		return nil, fmt.Errorf("copy the shim: %w", err)
	}
	if err := writeProgram(s.shim, patched); err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("copy the helper: %w", err)
	}
	return s, writeProgram(s.helper, own)
}

// writeProgram writes an executable file. A child that is started meanwhile
// would keep it open, and it could not be executed.
func writeProgram(path string, data []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, 0o700)
}

func (s *probeStage) remove() { _ = os.RemoveAll(s.dir) }

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
func (s *probeStage) launch(ctx context.Context, v visit) ([]outcome, report.Report, error) {
	var r report.Report
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	if err := os.Remove(s.report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, r, err
	}
	tries := v.tries
	if tries == nil {
		tries = []try{}
	}
	in, err := json.Marshal(tries)
	if err != nil {
		return nil, r, err
	}
	variable := s.rec.PolicyEnv
	if variable == "" {
		variable = rules.DefaultPolicyEnv
	}
	text := v.policy
	if len(variable)+1+len(text) >= maxString {
		text = "@" + s.dir + "/policy"
		if err := os.WriteFile(s.dir+"/policy", []byte(v.policy), 0o600); err != nil {
			return nil, r, err
		}
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.shim)
	cmd.Args = append([]string{filepath.Base(s.shim)}, v.args...)
	cmd.Env = append(slices.Clone(v.env), helperEnv+"=1", variable+"="+text)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
	cmd.ExtraFiles = v.files
	// A terminal's signals are for this process, which then cleans up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, r, &launchError{stderr.String(), fmt.Sprintf("it did not end within %v", v.timeout)}
	case ctx.Err() != nil:
		return nil, r, errInterrupted
	case err != nil:
		return nil, r, &launchError{stderr.String(), err.Error()}
	}
	var outcomes []outcome
	if err := json.Unmarshal(stdout.Bytes(), &outcomes); err != nil || len(outcomes) != len(tries) {
		return nil, r, &launchError{stderr.String(), "the helper did not answer"}
	}
	if r, err = lastReport(s.report); err != nil {
		return nil, r, &launchError{stderr.String(), "no launch report: " + err.Error()}
	}
	return outcomes, r, nil
}

// errInterrupted ends a probe that was told to stop, after it cleaned up.
var errInterrupted = errors.New("interrupted")

// lastReport reads the last line of a file of reports.
func lastReport(path string) (report.Report, error) {
	all, err := allReports(path)
	if err != nil {
		return report.Report{}, err
	}
	return all[len(all)-1], nil
}

// allReports reads a file of reports, of which there is at least one.
func allReports(path string) ([]report.Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, bare(err)
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
