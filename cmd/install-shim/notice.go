package main

import (
	"path"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
)

const noticeHelp = `install-shim notice [--policy FILE|-] [--profile-dir DIR]

Prints the sentences that a model should be told before it works under the
policy, one a line: the scope and the network; that temp and cache directories
are writable, where scope workspace makes them so; that the network is blocked,
where it is.

It says what the policy asks for. What a launch could hold of it stands in its
report.

Example:

  install-shim notice --policy policy.json
`

func (a *admin) notice(args []string) error {
	var file string
	var opts load.Options
	f := newFlags("notice")
	f.StringVar(&file, "policy", "", "")
	f.StringVar(&opts.ProfileDir, "profile-dir", "", "")
	rest, err := parse(f, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return &usageError{"notice", show(rest[0]) + ": unexpected"}
	}
	if opts.ProfileDir != "" && !path.IsAbs(opts.ProfileDir) {
		return &usageError{"notice", "--profile-dir " + show(opts.ProfileDir) + ": is not absolute"}
	}
	p, err := a.readPolicyText("notice", file, opts)
	if err != nil {
		return err
	}
	for _, line := range rules.Notice(p.Policy) {
		a.print(line + "\n")
	}
	return nil
}
