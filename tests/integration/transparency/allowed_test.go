package transparency

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

// A difference is what may differ from a direct start, and why. Whatever is not
// in the list below must be equal.
type difference struct {
	why  string
	only func(way) bool // nil means every way
	keys []string
}

var differences = []difference{
	{
		why: "two direct starts differ in it: numbers of processes and of keyrings made for one process",
		keys: []string{
			"status/Tgid", "status/Pid", "status/NStgid", "status/NSpid", "stat/pid",
			"keyring",
		},
	},
	{
		why: "two direct starts differ in it: addresses are random, and so is what the kernel rounds to pages around them",
		keys: []string{
			"status/VmStk", "status/VmSize", "status/VmPeak", "stat/vsize", "status/VmPTE",
			"stat/startcode", "stat/endcode", "stat/startstack", "stat/kstkesp", "stat/kstkeip",
			"stat/start_data", "stat/end_data", "stat/start_brk", "stat/arg_start", "stat/arg_end", "stat/env_start", "stat/env_end",
		},
	},
	{
		why: "times and counters",
		keys: []string{
			"status/voluntary_ctxt_switches", "status/nonvoluntary_ctxt_switches",
			"status/VmHWM", "status/VmRSS", "status/RssAnon", "status/RssFile", "status/RssShmem",
			"stat/minflt", "stat/cminflt", "stat/majflt", "stat/cmajflt", "stat/utime", "stat/stime", "stat/cutime", "stat/cstime",
			"stat/starttime", "stat/rss", "stat/processor", "stat/delayacct_blkio_ticks", "stat/guest_time", "stat/cguest_time",
			// Signals queued for all processes of the user.
			"status/SigQ",
		},
	},
	{
		// The kernel notes that a privilege was used (PF_SUPERPRIV), also for a filter.
		why:  "what the policy asks",
		only: func(w way) bool { return w.policy != "" },
		keys: []string{"status/NoNewPrivs", "no new privileges", "status/Seccomp", "status/Seccomp_filters", "seccomp mode", "keyring description", "stat/flags, superuser"},
	},
	{
		why:  "what the policy asks: capabilities, for a process that has some",
		only: func(w way) bool { return w.policy == policyRestricted },
		// And the kernel notes that a privilege was used for that (PF_SUPERPRIV).
		keys: []string{"stat/flags, superuser", "status/CapInh", "status/CapPrm", "status/CapEff", "status/CapBnd", "status/CapAmb", "capabilities", "ambient"},
	},
	{
		why:  "the real program of an install in place has another name",
		only: func(w way) bool { return w.inPlace },
		keys: []string{"status/Name", "stat/comm", "comm", "name", "exe"},
	},
}

// allowedIn returns the keys that may differ.
func allowedIn(w way) map[string]bool {
	keys := make(map[string]bool)
	for _, d := range differences {
		if d.only == nil || d.only(w) {
			for _, k := range d.keys {
				keys[k] = true
			}
		}
	}
	return keys
}

// statFields are those of /proc/self/stat, proc_pid_stat(5).
var statFields = strings.Fields(`pid comm state ppid pgrp session tty_nr tpgid flags minflt cminflt majflt cmajflt
	utime stime cutime cstime priority nice num_threads itrealvalue starttime vsize rss rsslim startcode endcode startstack
	kstkesp kstkeip signal blocked sigignore sigcatch wchan nswap cnswap exit_signal processor rt_priority policy
	delayacct_blkio_ticks guest_time cguest_time start_data end_data start_brk arg_start arg_end env_start env_end exit_code`)

// A fact is one comparable part of an account.
type fact struct{ key, value string }

// facts takes an account apart. A number that is the witness's own pid is
// written as such.
func facts(a bare.Account) ([]fact, error) {
	pid := a.Status("Pid")
	if pid == "" {
		return nil, fmt.Errorf("the witness has no pid in %q", a.Get("status"))
	}
	own := func(v string) string {
		if v == pid {
			return "own pid"
		}
		return v
	}
	var out []fact
	for _, item := range a {
		switch item.Name {
		case "status":
			for line := range strings.Lines(item.Value) {
				k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
				out = append(out, fact{"status/" + k, own(strings.TrimSpace(v))})
			}
		case "stat":
			open, shut := strings.IndexByte(item.Value, '('), strings.LastIndexByte(item.Value, ')')
			f := append([]string{strings.TrimSpace(item.Value[:open]), item.Value[open : shut+1]}, strings.Fields(item.Value[shut+1:])...)
			if len(f) < len(statFields) {
				return nil, fmt.Errorf("stat has %d fields: %q", len(f), item.Value)
			}
			for i, name := range statFields {
				if name == "flags" {
					const superPriv = 0x100
					flags := number(f[i])
					out = append(out, fact{"stat/flags, superuser", fmt.Sprint(flags & superPriv)})
					f[i] = fmt.Sprintf("%#x", flags&^superPriv)
				}
				out = append(out, fact{"stat/" + name, own(f[i])})
			}
		case "pgid", "sid":
			v := item.Value
			if strings.TrimSpace(v) == fmt.Sprintf("%016x", number(pid)) {
				v = "own pid"
			}
			out = append(out, fact{item.Name, v})
		case "interval timer":
			out = append(out, fact{item.Name, timer(item.Value)})
		default:
			out = append(out, fact{item.Name, item.Value})
		}
	}
	return out, nil
}

func number(text string) (v uint64) {
	if _, err := fmt.Sscan(text, &v); err != nil {
		panic(err)
	}
	return v
}

// timer keeps the interval, and of what remains the half hour.
func timer(value string) string {
	var interval, microInterval, left, micro uint64
	if n, err := fmt.Sscanf(value, "%x %x %x %x", &interval, &microInterval, &left, &micro); n != 4 {
		panic(err)
	}
	const half = 1800
	rest := "off"
	if left != 0 || micro != 0 {
		rest = fmt.Sprintf("%d half hours", (left+half-1)/half)
	}
	return fmt.Sprintf("interval %d.%06d, %s", interval, microInterval, rest)
}

// compare returns what differs beyond what is allowed.
func compare(direct, through bare.Account, allowed map[string]bool) ([]string, error) {
	want, err := facts(direct)
	if err != nil {
		return nil, err
	}
	got, err := facts(through)
	if err != nil {
		return nil, err
	}
	keys := func(list []fact) (out []string) {
		for _, f := range list {
			out = append(out, f.key)
		}
		return out
	}
	if !slices.Equal(keys(want), keys(got)) {
		return []string{fmt.Sprintf("items: direct %q, through the shim %q", keys(want), keys(got))}, nil
	}
	var diffs []string
	for i, f := range want {
		if f.value != got[i].value && !allowed[f.key] {
			diffs = append(diffs, fmt.Sprintf("%s: direct %s, through the shim %s", f.key, shorten(f.value), shorten(got[i].value)))
		}
	}
	return diffs, nil
}

func shorten(s string) string {
	if len(s) > 600 {
		return fmt.Sprintf("%d bytes, %.300q … %q", len(s), s, s[len(s)-300:])
	}
	return fmt.Sprintf("%q", s)
}
