package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSmallestProgram(t *testing.T) {
	code, err := smallest()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "smallest")
	if err := os.WriteFile(path, code, 0o755); err != nil {
		t.Fatal(err)
	}
	v := variant{name: "smallest", path: path, argv: []string{"smallest"}}
	if _, err := v.spawn(); err != nil {
		t.Error(err)
	}
}

func TestQuantile(t *testing.T) {
	times := []time.Duration{5, 1, 4, 2, 3}
	for _, row := range []struct {
		part float64
		want time.Duration
	}{{0, 1}, {0.5, 3}, {1, 5}} {
		if got := quantile(times, row.part); got != row.want {
			t.Errorf("quantile(%v) = %v, want %v", row.part, got, row.want)
		}
	}
	if !slices.Equal(times, []time.Duration{5, 1, 4, 2, 3}) {
		t.Errorf("quantile changed its argument: %v", times)
	}
}

func TestSpawnFails(t *testing.T) {
	v := variant{name: "false", path: "/bin/sh", argv: []string{"sh", "-c", "exit 125"}}
	if _, err := v.spawn(); err == nil || !strings.Contains(err.Error(), "status") {
		t.Errorf("a launch with exit status 125 gave %v", err)
	}
	if _, err := interleave([]variant{v}, 1); err == nil {
		t.Error("interleave counts a launch that failed")
	}
}

func TestNumbers(t *testing.T) {
	if got, err := numbers("10,100"); err != nil || !slices.Equal(got, []int{10, 100}) {
		t.Errorf("numbers = %v, %v", got, err)
	}
	for _, bad := range []string{"", "0", "x", "10,10", "-1"} {
		if got, err := numbers(bad); err == nil {
			t.Errorf("numbers(%q) = %v", bad, got)
		}
	}
}
