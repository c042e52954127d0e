package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"
)

func main() {
	list := flag.String("list", "", "file of rows (default: all beside this program)")
	only := flag.String("run", "", "regular expression of the names or files of the rows to run")
	jobs := flag.Int("j", runtime.NumCPU(), "how many at once")
	flag.Parse()
	ok, err := run(os.Stdout, *list, *only, *jobs)
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// run is false when an edit survived, or could not be tried.
func run(w io.Writer, list, only string, jobs int) (bool, error) {
	rows, err := choose(list, only)
	if err != nil {
		return false, err
	}
	b := &bench{w: w}
	if b.root, err = os.Getwd(); err != nil {
		return false, err
	}
	if b.dir, err = os.MkdirTemp("/var/tmp", "mutants-"); err != nil {
		return false, err
	}
	defer os.RemoveAll(b.dir)
	if err := os.Chmod(b.dir, 0o755); err != nil { // tests start themselves as other users
		return false, err
	}
	began := time.Now()
	if err := b.control(rows, jobs); err != nil {
		return false, err
	}
	parallel(jobs, len(rows), func(i int) { b.try(i, rows[i]) })
	fmt.Fprintf(w, "%d mutants, %d survivors, %d errors, %d s\n", len(rows), b.survivors, b.errors, int(time.Since(began).Seconds()))
	return b.survivors+b.errors == 0, nil
}

// choose reads the rows that are asked for.
func choose(list, only string) ([]mutant, error) {
	lists := []string{list}
	if list == "" {
		lists, _ = filepath.Glob("tests/mutants/*.txt") // the pattern is a good one
	}
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	var out []mutant
	for _, path := range lists {
		rows, err := readRows(path)
		if err != nil {
			return nil, err
		}
		for _, m := range rows {
			if match.MatchString(m.name) || match.MatchString(m.file) {
				out = append(out, m)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no row (is this the top of the module?)")
	}
	return out, nil
}

// A bench tries mutants of the module at root, with scratch files in dir.
type bench struct {
	root, dir string

	mu                sync.Mutex
	w                 io.Writer
	survivors, errors int
}

// control runs the tests unchanged: they must be there, run here and be green.
func (b *bench) control(rows []mutant, jobs int) error {
	runs := map[string]map[string]bool{}
	var pkgs []string
	for _, m := range rows {
		for _, t := range m.tests {
			if runs[t.pkg] == nil {
				runs[t.pkg] = map[string]bool{}
				pkgs = append(pkgs, t.pkg)
			}
			runs[t.pkg][t.run] = true
		}
	}
	all := make([]error, len(pkgs))
	parallel(jobs, len(pkgs), func(i int) {
		began, pkg, binary := time.Now(), pkgs[i], filepath.Join(b.dir, fmt.Sprintf("control-%d", i))
		if out, err := b.build(pkg, binary, ""); err != nil {
			all[i] = fmt.Errorf("%s does not compile:\n%s", pkg, out)
			return
		}
		for names := range runs[pkg] {
			out, err := b.test(pkg, binary, names, "")
			if err != nil || bytes.Contains(out, []byte("no tests to run")) {
				all[i] = fmt.Errorf("%s -run %s, unchanged, is not green: %v\n%s", pkg, names, err, out)
				return
			}
		}
		b.say("ok        unchanged: %s, %d sets of tests (%.1f s)", pkg, len(runs[pkg]), time.Since(began).Seconds())
	})
	return errors.Join(all...)
}

// try builds and runs one mutant.
func (b *bench) try(i int, m mutant) {
	began := time.Now()
	verdict, detail := b.verdict(i, m)
	took := time.Since(began).Seconds()
	b.mu.Lock()
	switch verdict {
	case "ok":
	case "SURVIVED":
		b.survivors++
	default:
		b.errors++
	}
	b.mu.Unlock()
	b.say("%-9s %s: %s (%.1f s)%s", verdict, m.file, m.name, took, detail)
}

func (b *bench) verdict(i int, m mutant) (verdict, detail string) {
	fail := func(err error) (string, string) { return "ERROR", fmt.Sprintf("\n  %s: %v", m.at, err) }
	path := filepath.Join(b.root, m.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return fail(err)
	}
	changed, err := m.apply(string(text))
	if err != nil {
		return fail(err)
	}
	scratch := filepath.Join(b.dir, fmt.Sprint(i))
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return fail(err)
	}
	defer os.RemoveAll(scratch)
	other, overlay := filepath.Join(scratch, filepath.Base(m.file)), filepath.Join(scratch, "overlay.json")
	plan, err := json.Marshal(map[string]map[string]string{"Replace": {path: other}})
	if err != nil {
		return fail(err)
	}
	if err := errors.Join(os.WriteFile(other, []byte(changed), 0o644), os.WriteFile(overlay, plan, 0o644)); err != nil {
		return fail(err)
	}
	for n, t := range m.tests {
		binary := filepath.Join(scratch, fmt.Sprintf("test-%d", n))
		if out, err := b.build(t.pkg, binary, overlay); err != nil {
			return fail(fmt.Errorf("does not compile:\n%s", out))
		}
		out, err := b.test(t.pkg, binary, t.run, overlay)
		if err == nil {
			return "SURVIVED", fmt.Sprintf("\n  %s: %s %s is green: %s", m.at, t.pkg, t.run, m.why)
		}
		if !regexp.MustCompile(`--- FAIL|panic: |fatal error: `).Match(out) {
			return fail(fmt.Errorf("%s %s is red without a test that failed: %w\n%s", t.pkg, t.run, err, out))
		}
		if n == 0 {
			if found := regexp.MustCompile(`--- FAIL: (\S+)`).FindSubmatch(out); found != nil {
				detail = " " + string(found[1])
			}
		}
	}
	return "ok", detail
}

// build compiles the tests of a package. overlay is "" for the real files.
func (b *bench) build(pkg, binary, overlay string) ([]byte, error) {
	return b.command(5*time.Minute, b.root, overlay, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, pkg)
}

// test runs tests in the directory of their package, as go test does.
func (b *bench) test(pkg, binary, names, overlay string) ([]byte, error) {
	return b.command(3*time.Minute, filepath.Join(b.root, pkg), overlay,
		binary, "-test.run", names, "-test.failfast", "-test.short", "-test.timeout", "2m")
}

// command runs one command. What the tests build themselves is built with the
// overlay too, and what a machine lacks is a failure, as it is for CI.
func (b *bench) command(limit time.Duration, dir, overlay string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	flags := ""
	if overlay != "" {
		flags = "-overlay=" + overlay
	}
	cmd.Env = append(os.Environ(), "CI=1", "GOFLAGS="+flags, "TEST_OVERLAY="+overlay)
	return cmd.CombinedOutput()
}

func (b *bench) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.w, format+"\n", args...)
}

// parallel calls f for 0 to n-1, so many at once.
func parallel(jobs, n int, f func(int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, max(jobs, 1))
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}
