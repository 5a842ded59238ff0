# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# Bash completion of krcore-handoff: options, commands, and nodes.

_krcore_handoff()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev='' command='' i
	local options='--directory --lease --memory --memory-max --most --share --idle --user --gid --share-net --bare
		--function --times --warm --parallel --retries --timeout --json --version --help'

	COMPREPLY=()
	(( COMP_CWORD )) && prev=${COMP_WORDS[COMP_CWORD - 1]}
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-[dlmMnaiugftprT]|--directory|--lease|--memory|--memory-max|--most|--share|--idle|--user|--gid|--function|--times|--parallel|--retries|--timeout)
			((i++))
			;;
		-*) ;;
		*)
			command=${COMP_WORDS[i]}
			break
			;;
		esac
	done
	if (( i > COMP_CWORD )); then
		case $prev in
		-d|--directory) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
		-u|--user) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
		esac
	elif [[ -z $command && $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	elif [[ -z $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W 'serve chain spread' -- "$cur")
	elif [[ $command != serve ]] && (( COMP_CWORD > i + 1 )); then
		mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur")
	fi
}
complete -F _krcore_handoff krcore-handoff
