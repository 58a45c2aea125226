/* Settings of the server that the store must know. */
#ifndef FF_STORE_SETTING_H
#define FF_STORE_SETTING_H

#include "store/txn.h"

enum { FF_SETTING_MAX = 64 };

/* The text of a setting, up to the room there is; empty if the server has no such setting. */
ff_text ff_setting_read(ValkeyModuleCtx *ctx, const char *name, char room[FF_SETTING_MAX]);

#endif
