#include "store/words.h"

#define FF_WORD_TEXT(name) [FF_WORD_##name] = {NULL, {#name, sizeof(#name) - 1}},
#define FF_PHRASE_TEXT(name, words) [FF_WORD_##name] = {NULL, {words, sizeof(words) - 1}},

ff_word ff_words[FF_WORD_COUNT] = {FF_WORDS(FF_WORD_TEXT) FF_PHRASES(FF_PHRASE_TEXT)};

void ff_words_load(void) {
    for (size_t i = 0; i < FF_WORD_COUNT; i++) {
        ff_words[i].str =
            ValkeyModule_CreateString(NULL, ff_words[i].text.ptr, ff_words[i].text.len);
    }
}

void ff_words_unload(void) {
    for (size_t i = 0; i < FF_WORD_COUNT; i++) {
        ValkeyModule_FreeString(NULL, ff_words[i].str);
        ff_words[i].str = NULL;
    }
}
