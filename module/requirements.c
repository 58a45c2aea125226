#include "requirements.h"

#include <stddef.h>

/* Every API function that the module calls. A server that lacks one leaves its pointer NULL. */
#define FF_API_FUNCTIONS(X) \
    X(AddACLCategory) \
    X(Alloc) \
    X(AvoidReplicaTraffic) \
    X(BlockClient) \
    X(BlockClientGetPrivateData) \
    X(BlockClientOnKeysWithFlags) \
    X(BlockClientSetPrivateData) \
    X(CachedMicroseconds) \
    X(Call) \
    X(CallReplyArrayElement) \
    X(CallReplyInteger) \
    X(CallReplyLength) \
    X(CallReplyStringPtr) \
    X(CallReplyType) \
    X(Calloc) \
    X(CloseKey) \
    X(CommandFilterArgGet) \
    X(CommandFilterArgReplace) \
    X(CommandFilterArgsCount) \
    X(CreateCommand) \
    X(CreateDict) \
    X(CreateString) \
    X(CreateStringFromCallReply) \
    X(CreateStringFromString) \
    X(CreateStringPrintf) \
    X(CreateSubcommand) \
    X(CreateTimer) \
    X(DeleteKey) \
    X(DictDelC) \
    X(DictGetC) \
    X(DictIteratorStartC) \
    X(DictIteratorStop) \
    X(DictNextC) \
    X(DictSetC) \
    X(DictSize) \
    X(EventLoopAddOneShot) \
    X(Free) \
    X(FreeCallReply) \
    X(FreeDict) \
    X(FreeServerInfo) \
    X(FreeString) \
    X(FreeThreadSafeContext) \
    X(GetAbsExpire) \
    X(GetBlockedClientPrivateData) \
    X(GetCommand) \
    X(GetContextFlags) \
    X(GetDetachedThreadSafeContext) \
    X(GetRandomBytes) \
    X(GetSelectedDb) \
    X(GetServerInfo) \
    X(HashGet) \
    X(HashSet) \
    X(HoldString) \
    X(InfoAddFieldCString) \
    X(InfoAddFieldULongLong) \
    X(InfoAddSection) \
    X(InfoBeginDictField) \
    X(InfoEndDictField) \
    X(IsKeysPositionRequest) \
    X(KeyAtPosWithFlags) \
    X(KeyExists) \
    X(KeyType) \
    X(LatencyAddSample) \
    X(LoadConfigs) \
    X(Log) \
    X(Milliseconds) \
    X(MonotonicMicroseconds) \
    X(NotifyKeyspaceEvent) \
    X(OpenKey) \
    X(Realloc) \
    X(RedactClientCommandArgument) \
    X(RegisterBoolConfig) \
    X(RegisterCommandFilter) \
    X(RegisterInfoFunc) \
    X(RegisterNumericConfig) \
    X(RegisterStringConfig) \
    X(Replicate) \
    X(ReplicateVerbatim) \
    X(ReplySetMapLength) \
    X(ReplyWithArray) \
    X(ReplyWithCString) \
    X(ReplyWithError) \
    X(ReplyWithErrorFormat) \
    X(ReplyWithLongLong) \
    X(ReplyWithMap) \
    X(ReplyWithNull) \
    X(ReplyWithString) \
    X(ReplyWithStringBuffer) \
    X(RetainString) \
    X(Scan) \
    X(ScanCursorCreate) \
    X(ScanCursorDestroy) \
    X(ScanCursorRestart) \
    X(ScanKey) \
    X(ServerInfoGetFieldUnsigned) \
    X(SetAbsExpire) \
    X(SetCommandACLCategories) \
    X(SetCommandInfo) \
    X(SetDisconnectCallback) \
    X(SetModuleOptions) \
    X(SignalKeyAsReady) \
    X(SignalModifiedKey) \
    X(StopTimer) \
    X(StreamAdd) \
    X(StreamTrimByLength) \
    X(StringAppendBuffer) \
    X(StringPtrLen) \
    X(StringSet) \
    X(SubscribeToKeyspaceEvents) \
    X(SubscribeToServerEvent) \
    X(TrimStringAllocation) \
    X(UnblockClient) \
    X(UnregisterCommandFilter) \
    X(ValueLength) \
    X(WrongArity) \
    X(ZsetAdd) \
    X(ZsetFirstInScoreRange) \
    X(ZsetRangeCurrentElement) \
    X(ZsetRangeEndReached) \
    X(ZsetRangeNext) \
    X(ZsetRangeStop) \
    X(ZsetRem) \
    X(ZsetScore)

bool ff_requirements_met(ValkeyModuleCtx *ctx) {
    bool met = true;
#define CHECK(name) \
    if (ValkeyModule_##name == NULL) { \
        met = false; \
        if (ValkeyModule_Log) { \
            ValkeyModule_Log(ctx, "warning", \
                             "this server lacks ValkeyModule_" #name \
                             ", which ff needs: use Valkey 8.0 or newer"); \
        } \
    }
    FF_API_FUNCTIONS(CHECK)
    return met;
}
