# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash disable=SC2154
#
# The part of the bash completion that does not change. The build puts the tables
# that krcore-metactl prints of itself before it:
#   _krcore_metactl_objects   words
#   _krcore_metactl_options   words
#   _krcore_metactl_commands  [object]="commands", "" if it needs no command
#   _krcore_metactl_params    [object command]="name/KIND ...", @ before positional
# KIND: F flag, N number, G GID, T text, P file, H hexadecimal digits.
#
# It works on the text of the line, because bash cuts words at the colons of a
# GID. Live GIDs come from the tool itself, with a short time-out.

# The one name that begins with $1, among the others; nothing if there is none.
_krcore_metactl_unique()
{
	local word=$1 name found=
	shift
	for name in "$@"; do
		if [[ $name == "$word" ]]; then
			echo "$name"
			return
		fi
		[[ -n $word && $name == "$word"* ]] || continue
		[[ -z $found ]] || return
		found=$name
	done
	echo "$found"
}

# $@: the tool, with the options that say whom to ask
_krcore_metactl_gids()
{
	timeout 2 "$@" -o record list count 500 2>/dev/null |
		sed -n 's/^gid \([^ ]*\) .*/\1/p' | sort -u
}

# $1: parameters of a command; then the words after it. Prints the kind of what
# comes next, or W and the words that may.
_krcore_metactl_next()
{
	local -a params=() names=()
	local -A kind=() taken=()
	local param name

	read -ra params <<<"$1"
	shift
	for param in "${params[@]}"; do
		if [[ $param != @* ]]; then
			name=${param%/*}
			names+=("$name")
			kind[$name]=${param##*/}
		elif (( $# == 0 )); then
			echo "${param##*/}"
			return
		else
			shift
		fi
	done
	while (( $# )); do
		name=$(_krcore_metactl_unique "$1" "${names[@]}")
		shift
		[[ -n $name ]] || return
		taken[$name]=1
		[[ ${kind[$name]} != F ]] || continue
		if (( $# == 0 )); then
			echo "${kind[$name]}"
			return
		fi
		shift
	done
	echo -n W
	for name in "${names[@]}"; do
		[[ -n ${taken[$name]} ]] || echo -n " $name"
	done
	echo
}

# $@: words after the options. Prints as _krcore_metactl_next() does.
_krcore_metactl_words()
{
	local object command
	local -a names=()

	if (( $# == 0 )); then
		echo "W $_krcore_metactl_objects help"
		return
	fi
	read -ra names <<<"$_krcore_metactl_objects"
	object=$(_krcore_metactl_unique "$1" "${names[@]}")
	[[ -n $object ]] || return
	shift
	read -ra names <<<"${_krcore_metactl_commands[$object]}"
	if (( ${#names[@]} )); then
		if (( $# == 0 )); then
			echo "W ${names[*]} help"
			return
		fi
		command=$(_krcore_metactl_unique "$1" "${names[@]}")
		[[ -n $command ]] || return
		shift
	fi
	_krcore_metactl_next "${_krcore_metactl_params[$object $command]}" "$@"
}

_krcore_metactl()
{
	local line=${COMP_LINE:0:COMP_POINT} cur want=
	local -a all=() words=() tool=() replies=()

	COMPREPLY=()
	read -ra all <<<"$line"
	[[ $line != *[[:space:]] ]] || all+=("")
	(( ${#all[@]} > 1 )) || return
	cur=${all[-1]}
	tool=("${all[0]}")
	all=("${all[@]:1:${#all[@]}-2}")
	while (( ${#all[@]} )); do
		case ${all[0]} in
		-s|-S|-c|-t|--socket|--servers|--config|--timeout)
			if (( ${#all[@]} == 1 )); then
				[[ ${all[0]} == -s || ${all[0]} == -c || ${all[0]} == --[cs]o* ]] ||
					return
				want=P
				break
			fi
			tool+=("${all[0]}" "${all[1]}")
			all=("${all[@]:2}")
			;;
		-*)
			all=("${all[@]:1}")
			;;
		*)
			words+=("${all[0]}")
			all=("${all[@]:1}")
			;;
		esac
	done

	if [[ -z $want && $cur == -* ]]; then
		want="W $_krcore_metactl_options"
	elif [[ -z $want ]]; then
		want=$(_krcore_metactl_words "${words[@]}")
	fi
	case $want in
	W*) read -ra replies <<<"${want#W}" ;;
	G) mapfile -t replies < <(_krcore_metactl_gids "${tool[@]}") ;;
	P) mapfile -t COMPREPLY < <(compgen -f -- "$cur") && return ;;
	*) return ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "${replies[*]}" -- "$cur")
	if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
		COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*:}"}"}")
	fi
}
complete -F _krcore_metactl krcore-metactl
