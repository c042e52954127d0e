package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	bin := flag.String("bin", "bin", "directory of sandbox-exec-shim and install-shim")
	spawns := flag.Int("spawns", 2000, "spawns of each variant without a policy")
	siblings := flag.String("siblings", "10,100,1000,10000", "how many siblings the hidden path has, in turn")
	flag.Parse()
	if err := run(os.Stdout, *bin, *spawns, *siblings); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(w io.Writer, bin string, spawns int, siblings string) error {
	counts, err := numbers(siblings)
	if err != nil {
		return fmt.Errorf("-siblings: %w", err)
	}
	// Not below /tmp: the directories above a hidden path are frozen, and the
	// temp directory may not be one of them.
	dir, err := os.MkdirTemp("/var/tmp", "shim-bench.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	go func() {
		<-interrupted
		os.RemoveAll(dir)
		os.Exit(1)
	}()
	s, err := newStage(dir, bin)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, machine()); err != nil {
		return err
	}
	for _, t := range s.targets {
		if err := s.passThrough(w, t, spawns); err != nil {
			return fmt.Errorf("pass-through: %w", err)
		}
	}
	if err := s.policies(w, counts); err != nil {
		return fmt.Errorf("launches with a policy: %w", err)
	}
	if err := s.workspace(w, min(500, spawns)); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	for _, text := range s.missing {
		fmt.Fprintf(w, "left out: %s\n", text)
	}
	return nil
}

func numbers(list string) ([]int, error) {
	var out []int
	for s := range strings.SplitSeq(list, ",") {
		var n int
		if _, err := fmt.Sscanf(s, "%d", &n); err != nil || n < 1 || len(out) > 0 && n <= out[len(out)-1] {
			return nil, fmt.Errorf("%q is not a number greater than the one before", s)
		}
		out = append(out, n)
	}
	return out, nil
}

// passThrough is the table of launches of one program without a policy.
func (s *stage) passThrough(w io.Writer, t target, spawns int) error {
	variants := []variant{
		{name: "the program itself", path: t.path, argv: []string{t.name}},
		{name: "through the shim, no policy", path: t.shim, argv: []string{t.name}},
	}
	if s.cExec != "" {
		variants = append(variants, variant{name: "through a static C program that calls execv", path: s.cExec, argv: []string{s.cExec, t.path}})
	}
	if s.goExec != "" {
		variants = append(variants, variant{name: "through a Go program that calls execve", path: s.goExec, argv: []string{s.goExec, t.path}})
	}
	times, err := interleave(variants, spawns)
	if err != nil {
		return err
	}
	tab := table{title: fmt.Sprintf("%s, without a policy, %d spawns each", t.what, spawns)}
	direct, shim := median(times[0]), median(times[1])
	for i, v := range variants {
		row := rowOf(v.name, times[i], direct)
		if i > 1 {
			row.note = fmt.Sprintf("the shim is %.2f of it", float64(shim)/float64(median(times[i])))
		}
		tab.rows = append(tab.rows, row)
	}
	return tab.print(w)
}

// policies is the table of launches that hide one directory among others.
func (s *stage) policies(w io.Writer, counts []int) error {
	program := s.targets[0]
	var last time.Duration // the shim's median one count before
	lastCount := 0
	for _, n := range counts {
		hidden, err := s.siblings(n)
		if err != nil {
			return err
		}
		variants := []variant{
			{name: "the program itself", path: program.path, argv: []string{program.name}},
			{
				name: "through the shim, one path hidden", path: program.shim, argv: []string{program.name},
				env: []string{`SANDBOX_EXEC_SHIM_POLICY={"version":1,"hidden":["` + hidden + `"]}`},
			},
		}
		if s.bwrap != "" {
			variants = append(variants, variant{
				name: "through bwrap, an empty directory over it", path: s.bwrap,
				argv: []string{"bwrap", "--dev-bind", "/", "/", "--tmpfs", hidden, "--remount-ro", hidden, program.path},
			})
		}
		spawns := max(20, min(500, 100_000/n))
		times, err := interleave(variants, spawns)
		if err != nil {
			return err
		}
		t := table{title: fmt.Sprintf("one hidden directory among %d siblings, %d spawns each", n, spawns)}
		direct := median(times[0])
		for i, v := range variants {
			row := rowOf(v.name, times[i], direct)
			if i == 1 {
				now := median(times[i])
				if lastCount > 0 {
					row.note = fmt.Sprintf("%.1f us for each further sibling", float64((now-last).Microseconds())/float64(n-lastCount))
				}
				last, lastCount = now, n
			}
			t.rows = append(t.rows, row)
		}
		if err := t.print(w); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Dir(hidden)); err != nil {
			return err
		}
	}
	return nil
}
