package main

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// A variant is one way to start the program.
type variant struct {
	name string
	// path is absolute; argv and env are passed as they are.
	path string
	argv []string
	env  []string
}

// spawn starts the variant and waits for it. Anything but exit status 0 is an
// error: the time of a launch that failed says nothing.
func (v *variant) spawn() (time.Duration, error) {
	attr := &syscall.ProcAttr{Env: v.env, Files: []uintptr{0, 1, 2}}
	began := time.Now()
	pid, err := syscall.ForkExec(v.path, v.argv, attr)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", v.name, err)
	}
	var status syscall.WaitStatus
	for {
		_, err = syscall.Wait4(pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("%s: wait: %w", v.name, err)
	}
	if !status.Exited() || status.ExitStatus() != 0 {
		return 0, fmt.Errorf("%s: ended with status %#x", v.name, uint32(status))
	}
	return took, nil
}

// warmUp is how many rounds are not counted: they read the files from disk.
const warmUp = 5

// interleave spawns all variants in turn, and returns the times of each.
func interleave(variants []variant, spawns int) ([][]time.Duration, error) {
	times := make([][]time.Duration, len(variants))
	for round := range warmUp + spawns {
		for i := range variants {
			// Each round begins with another one, so that none always
			// follows the same neighbour.
			k := (i + round) % len(variants)
			took, err := variants[k].spawn()
			if err != nil {
				return nil, err
			}
			if round >= warmUp {
				times[k] = append(times[k], took)
			}
		}
	}
	return times, nil
}

// median returns the middle of the times, which must not be empty.
func median(times []time.Duration) time.Duration { return quantile(times, 0.5) }

// quantile returns the time that the given part of all, 0 to 1, does not
// exceed. It leaves times as it is.
func quantile(times []time.Duration, part float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(part*float64(len(sorted)-1))]
}
