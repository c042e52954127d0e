package main

// help prints the text for a command, or for all.
func (a *admin) help(args []string) error {
	topic := ""
	if len(args) > 0 {
		topic = args[0]
	}
	text, ok := helpText[topic]
	if !ok || len(args) > 1 {
		return &usageError{"", "no help for " + show(topic)}
	}
	a.print(text)
	return nil
}

var helpText = map[string]string{
	"": `install-shim puts sandbox-exec-shim in front of programs, or in their place.

  install-shim install --dir DIR [options] NAME...    shadow programs on PATH
  install-shim install --in-place [options] PATH...   replace program files
  install-shim uninstall --dir DIR NAME...            take shims away again
  install-shim uninstall --in-place PATH...           give programs their names back
  install-shim status [--json] [PATH...]              what stands where, and does it work
  install-shim run [--policy FILE] -- COMMAND...      one confined launch, nothing installed
  install-shim policy eval-hide ...                   print a policy that hides graders
  install-shim probe [--policy FILE] [--target NAME]  try whether a policy holds
  install-shim explain [--policy FILE] -- [ARG...]    what a launch would hide and leave open
  install-shim profile list|show|check                named parts of policies
  install-shim notice [--policy FILE]                 what to tell a model
  install-shim check-command COMMAND                  which paths a shell command names
  install-shim version
  install-shim help COMMAND                           options and examples

A shim without a policy runs the program as if the shim were not there. Try it:

  install-shim install --dir /opt/shims bash
  export PATH=/opt/shims:$PATH
  SANDBOX_EXEC_SHIM_POLICY='{"version":1,"hidden":["/srv/secrets"]}' bash

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. "run" has its own.
`,
	"install": `install-shim install --dir DIR [options] NAME...
install-shim install --in-place [options] PATH...

With --dir, DIR gets a shim under each NAME. It stands for the program that PATH
gives for NAME outside of DIR. Put DIR first on PATH. A caller that uses an
absolute path does not meet it.

With --in-place, the shim takes the name of the program itself, so that every
caller meets it. The program keeps its inode and its directory; it is then
called PATH.shim-real. The name leads to a working program at every moment.

All names are checked before the first is changed. What is there already is
left alone when it is the same, and replaced in one step when it is an older
shim or has other options. A file that is not a shim is never overwritten.

  --real PATH        with --dir: the real program, absolute, for all NAMEs
  --shim FILE        the shim to install (default: sandbox-exec-shim beside
                     install-shim)
  --policy-env NAME  the variable that carries the policy
                     (default: SANDBOX_EXEC_SHIM_POLICY)
  --argv0 keep|real  give the program the caller's argv[0] (default), or its
                     own path; for programs that find their parts by it
  --on-missing pass  what to do without a policy: run the program unconfined.
                     "refuse" is not supported by this version
  --report PATH      launch reports go here, unless the policy says otherwise
  --log PATH         diagnostics go here, unless the policy says otherwise
  --profile-dir DIR  where the profiles of policies are, NAME.json each; absolute

Examples:

  # Shadow bash and sh for whoever has /opt/shims first on PATH.
  install-shim install --dir /opt/shims bash sh

  # The program is not the one on PATH.
  install-shim install --dir /opt/shims --real /usr/lib/node-22/bin/node node

  # Every applet of one program that looks at its own name.
  install-shim install --dir /opt/shims --real /bin/busybox ls cat wget

  # Every caller meets the shim, also by absolute path.
  install-shim install --in-place /usr/bin/bash

  # The policy comes in a variable of the harness.
  install-shim install --dir /opt/shims --policy-env MY_HARNESS_POLICY bash
`,
	"uninstall": `install-shim uninstall --dir DIR NAME...
install-shim uninstall --in-place PATH...

With --dir, the shims are removed. With --in-place, the programs get their names
back: the same files, not copies.

All names are checked before the first is changed. A name that has no shim is
no error. Where a package upgrade has overwritten an in-place shim, the newer
program stays and the older one beside it is removed.

Examples:

  install-shim uninstall --dir /opt/shims bash sh
  install-shim uninstall --in-place /usr/bin/bash
`,
	"status": `install-shim status [--json] [--dir DIR]... [PATH...]

Says for each shim which program it stands for, whether PATH leads to it, and
whether the program is still there. Without DIR and PATH it looks through PATH.

  --json     one JSON object: {"version":1,"shims":[...]}
  --dir DIR  all shims in a directory; may be given more than once

States:

  ok          the shim leads to its program
  broken      it does not: the program is gone, not executable, or a shim
  unfinished  an install in place was interrupted; the program works unconfined
  replaced    something wrote over an in-place shim, most likely an upgrade
  missing     the name is gone, its program is left as PATH.shim-real
  no-record   a shim that was copied there, not installed
  not-a-shim

The exit code is 0 when all are ok, else 1. That PATH does not lead to a shim is
shown, and is no failure.

Examples:

  install-shim status
  install-shim status --dir /opt/shims
  install-shim status --json /usr/bin/bash
`,
	"run": `install-shim run [--policy FILE|-] [--shim FILE] -- COMMAND [ARG...]
install-shim run [--required] [--hide PATH]... [--expose PATH]...
                 [--set NAME=VALUE|--unset NAME]... -- COMMAND [ARG...]

Runs one command confined, with nothing installed: for trying a policy, and for
those who can change the launch. The policy comes from FILE, from standard input
(-), or from SANDBOX_EXEC_SHIM_POLICY when --policy is not given.

COMMAND is looked up on PATH. A shim that is found there is passed over. The
command gets argv[0] as it is written here. Unlike an installed shim, run itself
starts as an ordinary Go program: a closed descriptor 0, 1 or 2 is opened to
/dev/null, and the signal mask is the runtime's.

  --policy FILE     the policy; - is standard input
  --shim FILE       a bare shim (default: sandbox-exec-shim beside install-shim)

In place of a policy:

  --hide PATH       nothing at or beneath PATH can be reached
  --expose PATH     but this, beneath a hidden path, which must exist
  --required        do not start the command unconfined (default: start it, and
                    warn, when the kernel cannot confine it)
  --set NAME=VALUE  change the command's environment; the last one of a NAME counts
  --unset NAME      likewise

A relative PATH counts from the current directory.

Exit codes: the command's own; 125 the policy or the shim is at fault, 126 the
command cannot be executed, 127 it was not found.

Examples:

  install-shim run --policy policy.json -- bash -c 'ls /srv/secrets'
  echo '{"version":1,"hidden":["/srv/secrets"]}' | install-shim run --policy - -- make test
  install-shim run --required --hide /srv/runs --expose /srv/runs/own --unset TOKEN -- agent
`,
	"policy":        policyHelp,
	"probe":         probeHelp,
	"explain":       explainHelp,
	"profile":       profileHelp,
	"notice":        noticeHelp,
	"check-command": checkCommandHelp,
	"version": `install-shim version

Prints the version of install-shim.
`,
	"help": `install-shim help [COMMAND]

Prints what a command does, its options and examples.
`,
}
