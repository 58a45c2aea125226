#include "engine/completion.h"

#include "base/json.h"

void ff_completion_note(ff_txn *t, ff_str *flow_id, ff_str *execution_id) {
    if (!ff_str_is_set(flow_id)) return;
    ff_ended *ended = ff_arena_alloc(&t->arena, sizeof *ended);
    *ended = (ff_ended){t->ended, execution_id, flow_id};
    t->ended = ended;
}

void ff_completion_announce(ff_txn *t, ff_str *flow_id, ff_str *execution_id,
                            const ff_word *outcome) {
    if (!ff_str_is_set(flow_id)) return;
    ff_completion_note(t, flow_id, execution_id);
    ff_buffer message;
    ff_buffer_init(&message, &t->arena);
    ff_buffer_append(&message, FF_TEXT("{\"flow_id\":"));
    ff_json_write_string(&message, ff_str_text(flow_id));
    ff_buffer_append(&message, FF_TEXT(",\"execution_id\":"));
    ff_json_write_string(&message, ff_str_text(execution_id));
    ff_buffer_append(&message, FF_TEXT(",\"outcome\":"));
    ff_json_write_string(&message, outcome->text);
    ff_buffer_append_byte(&message, '}');
    ff_txn_publish(t, FF_TEXT("ff:dag:completions"), ff_buffer_text(&message));
}
