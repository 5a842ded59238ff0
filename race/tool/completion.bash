# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# Bash completion of krcore-race: options, commands, and the file that load reads.

_krcore_race()
{
	local cur=${COMP_WORDS[COMP_CWORD]} command='' i
	local options='--service --port --memory --groups --depth --lease --reclaim --verbose
		--version --help'

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-[spmgdl]|--service|--port|--memory|--groups|--depth|--lease) ((i++)) ;;
		-*) ;;
		*)
			command=${COMP_WORDS[i]}
			break
			;;
		esac
	done
	(( i <= COMP_CWORD )) || return # the number of an option
	if [[ -z $command && $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	elif [[ -z $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W 'serve get put insert update del scan load check' \
			-- "$cur")
	elif [[ $command != serve ]] && (( COMP_CWORD == i + 1 )); then
		mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur")
	elif [[ $command == load ]] && (( COMP_CWORD == i + 2 )); then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}
complete -F _krcore_race krcore-race
