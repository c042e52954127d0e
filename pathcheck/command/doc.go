// Package command says which paths a shell command string names, and whether
// they stay within allowed roots, before anything runs.
//
// It is advice, not a boundary: the operating system's confinement is that. It parses
// the text (mvdan.cc/sh) and walks it once. It knows words that are literal, variables
// that got a literal value before, cd, redirections, and what stands in sh -c '…'. A
// cd is taken to succeed; what a branch or a loop may have changed is not known
// afterwards. Whatever else the shell expands is opaque: reported, and not refused.
// What programs do with their words is a table (programs.go); what only reads is not
// refused. What a program does with its input and the network it does not see.
package command
