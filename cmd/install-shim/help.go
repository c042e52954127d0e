package main

const overview = `install-shim puts sandbox-exec-shim in front of programs, or in their place.

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
`

const versionHelp = `install-shim version

Prints the version of install-shim.
`

const helpHelp = `install-shim help [COMMAND]

Prints what a command does, its options and examples.
`
