#include "engine/code.h"

#define FF_CODE_WORD(name, word) [FF_##name] = word,

static const char *const words[FF_CODE_COUNT] = {FF_SUCCESS_CODES(FF_CODE_WORD)
                                                     FF_REFUSAL_CODES(FF_CODE_WORD)};

const char *ff_code_word(ff_code code) { return words[code]; }
