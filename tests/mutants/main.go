package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	list := flag.String("list", "tests/mutants/*.txt", "files of rows")
	only := flag.String("run", "", "regular expression of the names or files of the rows to run")
	jobs := flag.Int("j", runtime.NumCPU(), "how many at once")
	flag.Parse()
	ok, err := run(*list, *only, *jobs)
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// run is false when an edit survived, or could not be tried.
func run(list, only string, jobs int) (bool, error) {
	rows, err := choose(list, only)
	if err != nil {
		return false, err
	}
	var b bench
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
	// First the tests unchanged: they must be there, run here and be green.
	if controls := unchanged(rows); b.all(controls, jobs)[survived] != len(controls) {
		return false, errors.New("there is a package that is not green unchanged")
	}
	began, count := time.Now(), b.all(rows, jobs)
	fmt.Fprintf(os.Stdout, "%d mutants, %d survivors, %d errors, %d s\n", len(rows), count[survived], count[failed], int(time.Since(began).Seconds()))
	return count[noticed] == len(rows), nil
}

const noticed, survived, failed = "ok", "SURVIVED", "ERROR"

// choose reads the rows that are asked for.
func choose(list, only string) (out []mutant, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(list)
	for _, path := range paths {
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
	if err == nil && out == nil {
		err = errors.New("no row (is this the top of the module?)")
	}
	return out, err
}

// A bench tries mutants of the module at root, with scratch files in dir.
type bench struct {
	root, dir  string
	sync.Mutex // for the lines and what they count
}

// unchanged is a row without an edit for each package.
func unchanged(rows []mutant) (out []mutant) {
	names := map[string]string{}
	for _, m := range rows {
		for _, t := range m.tests {
			names[t.pkg] += "|" + t.run
		}
	}
	for pkg, run := range names {
		out = append(out, mutant{name: "unchanged", tests: []target{{pkg, run[1:]}}})
	}
	return out
}

// all tries rows, so many at once, and counts the verdicts.
func (b *bench) all(rows []mutant, jobs int) map[string]int {
	count, slots := map[string]int{}, make(chan struct{}, max(jobs, 1))
	var wg sync.WaitGroup
	for i, m := range rows {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			began := time.Now()
			verdict, detail := b.try(filepath.Join(b.dir, fmt.Sprint(i)), m)
			b.Lock()
			defer b.Unlock()
			count[verdict]++
			if m.file == "" && verdict == survived {
				verdict, detail = noticed, m.tests[0].pkg
			}
			fmt.Fprintf(os.Stdout, "%-9s %s: %s (%.1f s) %s\n", verdict, m.file, m.name, time.Since(began).Seconds(), detail)
		})
	}
	wg.Wait()
	return count
}

// try builds and runs one mutant, or the files as they are for a row without an edit.
func (b *bench) try(scratch string, m mutant) (verdict, detail string) {
	fail := func(what string, err error, out []byte) (string, string) {
		return failed, fmt.Sprintf("\n  %s: %s: %v\n%s", m.at, what, err, out)
	}
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return fail("no scratch", err, nil)
	}
	defer os.RemoveAll(scratch)
	overlay := ""
	if m.file != "" {
		overlay = filepath.Join(scratch, "overlay.json")
		if err := m.apply(filepath.Join(b.root, m.file), overlay); err != nil {
			return fail("cannot apply", err, nil)
		}
	}
	for _, t := range m.tests {
		binary := filepath.Join(scratch, "test")
		if out, err := b.command(b.root, overlay, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, t.pkg); err != nil {
			return fail("does not compile", err, out)
		}
		out, err := b.command(filepath.Join(b.root, t.pkg), overlay, binary, "-test.run", t.run, "-test.failfast", "-test.short", "-test.timeout", "4m")
		found := regexp.MustCompile(`--- FAIL: \S+|panic: .*|fatal error: .*`).Find(out)
		switch {
		case strings.Contains(string(out), "no tests to run"), err != nil && found == nil, err != nil && overlay == "":
			return fail("tests", err, out)
		case err == nil:
			return survived, fmt.Sprintf("\n  %s: %s %s is green. %s", m.at, t.pkg, t.run, m.why)
		}
		detail += strings.TrimPrefix(string(found), "--- FAIL: ") + " "
	}
	return noticed, detail
}

// command runs one command. What the tests build themselves is built with the
// overlay too, and what a machine lacks is a failure, as it is for CI.
func (b *bench) command(dir, overlay string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
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
