// Command summary reads the output of go test -json and prints what a person
// wants of it: the result line of every package, the whole output of every
// test that failed, and at the end what was skipped and why.
//
// It exits with 1 when something failed or when no test ran at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	s := newSummary(os.Stdout)
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintf(os.Stderr, "summary: %v\n", err)
		os.Exit(1)
	}
	if !s.close() {
		os.Exit(1)
	}
}

// An event is one line of go test -json (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// A name is one test of one package; test is "" for the package itself.
type name struct{ pkg, test string }

type summary struct {
	w              io.Writer
	output         map[name][]string
	passed, failed int
	broken         int // packages that did not build or did not end well
	skips          []skip
}

type skip struct {
	name
	reason string
}

func newSummary(w io.Writer) *summary {
	return &summary{w: w, output: make(map[name][]string)}
}

// read takes all events. A line that is no event is printed as it is: the go
// command writes some errors so.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				s.print(string(line))
			} else {
				s.event(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

func (s *summary) event(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		s.print(e.Output)
	case "build-fail":
		s.broken++
	case "output":
		if e.Test == "" {
			s.packageLine(e.Output)
			return
		}
		s.output[n] = append(s.output[n], e.Output)
	case "pass", "skip", "fail":
		s.result(n, e.Action)
	}
}

// packageLine prints a line that belongs to no test, but for the bare verdict
// that go test prints before the package's result line.
func (s *summary) packageLine(line string) {
	if line != "PASS\n" && line != "FAIL\n" {
		s.print(line)
	}
}

func (s *summary) result(n name, action string) {
	if n.test == "" {
		if action == "fail" {
			s.packageFailed(n.pkg)
		}
		return
	}
	lines := s.output[n]
	delete(s.output, n)
	switch action {
	case "pass":
		s.passed++
	case "skip":
		s.skips = append(s.skips, skip{n, reason(lines)})
	case "fail":
		s.failed++
		s.test(lines)
	}
}

// packageFailed prints what tests said that never came to an end: the process
// died under them.
func (s *summary) packageFailed(pkg string) {
	s.broken++
	var open []name
	for n := range s.output {
		if n.pkg == pkg {
			open = append(open, n)
		}
	}
	slices.SortFunc(open, func(a, b name) int { return strings.Compare(a.test, b.test) })
	for _, n := range open {
		s.print("    " + n.test + " did not finish\n")
		s.test(s.output[n])
		delete(s.output, n)
	}
}

func (s *summary) test(lines []string) {
	for _, line := range lines {
		if !progress.MatchString(line) {
			s.print(line)
		}
	}
}

// progress matches the lines with which go test -v says where it is.
var progress = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) `)

// verdict matches the lines that are no part of what a test said.
var verdict = regexp.MustCompile(`^\s*--- `)

// position matches where in the source a message of a test stands.
var position = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

func reason(lines []string) string {
	var said []string
	for _, line := range lines {
		if progress.MatchString(line) || verdict.MatchString(line) {
			continue
		}
		said = append(said, strings.TrimSpace(position.ReplaceAllString(line, "")))
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, "; ")
}

// close prints the end and reports whether all went well.
func (s *summary) close() bool {
	if len(s.skips) > 0 {
		s.print("\nskipped:\n")
	}
	for _, sk := range s.skips {
		pkg := sk.pkg[strings.LastIndexByte(sk.pkg, '/')+1:]
		s.print(fmt.Sprintf("  %s %s: %s\n", pkg, sk.test, sk.reason))
	}
	s.print(fmt.Sprintf("\n%d passed, %d failed, %d skipped\n", s.passed, s.failed, len(s.skips)))
	ran := s.passed + s.failed
	if ran == 0 {
		s.print("no test ran\n")
	}
	return s.failed == 0 && s.broken == 0 && ran > 0
}

// print ignores errors: there is nowhere else to say it, and the exit status
// does not depend on it.
func (s *summary) print(text string) { _, _ = io.WriteString(s.w, text) }
