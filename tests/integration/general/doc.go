// Package general tests one launch of the real, static shim from the outside:
// what the program gets, what happens without a policy or with a bad one, exit
// codes, messages, reports, and what holds where Landlock is old, missing or
// full. Every test runs as root and as an ordinary user, and every denial
// stands beside the same thing succeeding without the policy.
package general
