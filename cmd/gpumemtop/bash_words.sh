# Where the package bash-completion is not loaded: the little of it that is needed.
declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
    # readline splits words at = and :, which join them here
    local word
    words=() cword=-1
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if ((cword >= 0)) && [[ $word == [=:]* || ${words[cword]} == *[=:] ]]; then
            words[cword]+=$word
        else
            words[++cword]=$word
        fi
    done
    words+=("${COMP_WORDS[@]:COMP_CWORD+1}")
    cur=${words[cword]} prev=${words[cword > 0 ? cword - 1 : 0]}
}
declare -F _filedir >/dev/null || _filedir() {
    # folders, and files: all, or those with an extension; -d: none
    local IFS=$'\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -d -- "$cur"))
    if [[ ! $1 ]]; then
        COMPREPLY+=($(compgen -f -- "$cur"))
    elif [[ $1 != -d ]]; then
        COMPREPLY+=($(compgen -f -X "!*.${1%|}" -- "$cur"))
    fi
}

