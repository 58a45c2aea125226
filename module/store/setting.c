#include "store/setting.h"

#include <string.h>

static ff_text copy_text(ValkeyModuleCallReply *reply, char room[FF_SETTING_MAX]) {
    size_t length;
    const char *text = ValkeyModule_CallReplyStringPtr(reply, &length);
    if (text == NULL) return FF_TEXT("");
    if (length > FF_SETTING_MAX) length = FF_SETTING_MAX;
    memcpy(room, text, length);
    return ff_text_make(room, length);
}

ff_text ff_setting_read(ValkeyModuleCtx *ctx, const char *name, char room[FF_SETTING_MAX]) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "CONFIG", "cc", "GET", name);
    if (reply == NULL) return FF_TEXT("");
    ff_text value = FF_TEXT("");
    if (ValkeyModule_CallReplyType(reply) == VALKEYMODULE_REPLY_ARRAY &&
        ValkeyModule_CallReplyLength(reply) >= 2) {
        value = copy_text(ValkeyModule_CallReplyArrayElement(reply, 1), room);
    }
    ValkeyModule_FreeCallReply(reply);
    return value;
}
