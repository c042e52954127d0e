package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

type table struct {
	title string
	rows  []row
}

type row struct {
	name             string
	min, median, p90 time.Duration
	ratio            float64
	note             string
}

func rowOf(name string, times []time.Duration, direct time.Duration) row {
	m := median(times)
	return row{
		name: name, min: quantile(times, 0), median: m, p90: quantile(times, 0.9),
		ratio: float64(m) / float64(direct),
	}
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s\n", t.title)
	fmt.Fprintf(tw, "  \tmin\tmedian\t90%%\tratio\t\n")
	for _, r := range t.rows {
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%.2f\t%s\n", r.name, ms(r.min), ms(r.median), ms(r.p90), r.ratio, r.note)
	}
	return tw.Flush()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.3f ms", float64(d.Microseconds())/1000) }

// machine says on what the numbers were taken.
func machine() string {
	kernel := "unknown"
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		kernel = unix.ByteSliceToString(u.Release[:])
	}
	return fmt.Sprintf("%s, %d processors (%s), Linux %s, uid %d\n",
		runtime.GOARCH, runtime.NumCPU(), processor(), kernel, os.Geteuid())
}

// processor is the model name where /proc/cpuinfo has one (x86).
func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range bytes.Lines(data) {
		key, value, _ := strings.Cut(string(line), ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
