// Made of openapi.json by `npm run schema`: not to be changed by hand.
// sha256 of openapi.json: fa27fe24234934bfae98197c90a3e1b8f734fae462fd7904da05cd38a87bb2dd

export interface paths {
    "/conversations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Conversations
         * @description Conversations by the time of their last message, without state, policy and scratchpad.
         */
        get: operations["list_conversations"];
        put?: never;
        /**
         * Create Conversation
         * @description Start a conversation.
         */
        post: operations["create_conversation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Conversation
         * @description One conversation, with its policy, its state and its scratchpad.
         */
        get: operations["get_conversation"];
        put?: never;
        post?: never;
        /**
         * Delete Conversation
         * @description Delete a conversation with everything derived from it.
         */
        delete: operations["delete_conversation"];
        options?: never;
        head?: never;
        /**
         * Patch Conversation
         * @description Change the given fields; a new policy takes effect at once.
         */
        patch: operations["patch_conversation"];
        trace?: never;
    };
    "/conversations/{conversation_id}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Usage
         * @description How full the context is.
         */
        get: operations["get_usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/states": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List States
         * @description Versions of the state; with `a` and `b`, the differences between the two.
         */
        get: operations["list_states"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore State
         * @description Restore an earlier state and its boundary, as a new version.
         */
        post: operations["restore_state"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Release Conversation
         * @description Release a conversation that was set aside because processes ended during work on it.
         *
         *     The scope `admin` is needed.
         */
        post: operations["release_conversation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/examination": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Examine State
         * @description List what checks of earlier versions of the service damaged in the state that is served.
         *
         *     With `mend`, code repairs what it can, as a new version: sentences that took an item's place are removed, and a
         *     stale narrative is replaced by the newest entries. A second call finds nothing and changes nothing.
         */
        post: operations["examine_state"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export Conversation
         * @description The full history as a file; Markdown never shows compactions.
         */
        get: operations["export_conversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Messages
         * @description The full history, oldest first by default; no compaction ever changes it.
         */
        get: operations["list_messages"];
        put?: never;
        /**
         * Append Message
         * @description Append a message without asking a model for a reply.
         */
        post: operations["append_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/messages/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Append Messages
         * @description Append up to 1 000 messages, either all or none.
         */
        post: operations["append_messages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/messages/{message_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Erase Message
         * @description Erase a message and everything derived from it; its place in the history stays.
         */
        delete: operations["erase_message"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search Messages
         * @description The original messages that match, best first, including compacted ones but no erased ones.
         *
         *     A query without a word (signs, an emoji), or with words that are found nowhere, is searched for literally in the
         *     newest 20 000 messages.
         */
        get: operations["search_messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/messages/{message_id}/pin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Pin Message
         * @description Pin a message, so that it is served verbatim.
         *
         *     409 `pin_budget_exceeded`, with numbers, if the policy has no room for it.
         */
        put: operations["pin_message"];
        post?: never;
        /**
         * Unpin Message
         * @description Remove a pin. The message stays protected if a rule of the policy protects it.
         */
        delete: operations["unpin_message"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Files
         * @description The files of a conversation in the order in which they were attached, which is their order in contexts.
         */
        get: operations["list_files"];
        put?: never;
        /**
         * Attach File
         * @description Attach a file.
         *
         *     Every context contains it whole, before all messages; 409 `no_room_for_file` if that is impossible.
         */
        post: operations["attach_file"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/files/{file_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get File
         * @description One file, without its bytes.
         */
        get: operations["get_file"];
        put?: never;
        post?: never;
        /**
         * Remove File
         * @description Remove a file. No context contains it any more, and a copy at a provider is deleted.
         */
        delete: operations["remove_file"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/files/{file_id}/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get File Content
         * @description The bytes of a file, as a download.
         */
        get: operations["get_file_content"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/anchors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Anchors
         * @description The anchors by their position; with a type or a status only those that have it.
         */
        get: operations["list_anchors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/anchors/{anchor_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Patch Anchor
         * @description Set an anchor to settled, replaced or active again; only active anchors are served.
         */
        patch: operations["patch_anchor"];
        trace?: never;
    };
    "/conversations/{conversation_id}/segments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Segments
         * @description The segments that the present state covers, by position, each at this level or the nearest one that it has.
         */
        get: operations["list_segments"];
        put?: never;
        /**
         * Make Level
         * @description Make a level of a segment now: `detailed` by the summarizer if there is one, the others by code.
         */
        post: operations["make_level"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/segments/{segment_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Expand Segment
         * @description Expand a marker. Every segment id that was ever served works; `earlier` and `anchors` give their lists.
         */
        get: operations["expand_segment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/chat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Chat
         * @description Send a message, results of your tools, or neither to answer what still waits, and get the reply.
         */
        post: operations["chat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/chat/interrupt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Interrupt Chat
         * @description Stop the running reply, in whichever process it runs; what was said so far is kept.
         */
        post: operations["interrupt_chat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/chat/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow Turn
         * @description The running turn from `message.created` on; the part of the reply that was said before comes at once.
         */
        get: operations["follow_turn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/chat/regenerate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Regenerate Reply
         * @description Answer the last message again.
         *
         *     The first reply stays in the history as `superseded`, and is not served any more.
         */
        post: operations["regenerate_reply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/ui": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answer Ui Message
         * @description Answer the last message of a chat, continue with results of its tools, or make its last reply again.
         *
         *     Without an `Idempotency-Key` the message's own id is the key: a message that is sent twice has one effect, and both
         *     requests get the answer.
         */
        post: operations["answer_ui_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/ui/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Resume Ui Stream
         * @description The running turn from its beginning, in whichever process it runs, with its whole message.
         */
        get: operations["resume_ui_stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List All Compactions
         * @description The compactions of all conversations.
         */
        get: operations["list_all_compactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compactions/{compaction_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry Compaction
         * @description Queue a failed compaction again, as a new one.
         */
        post: operations["retry_compaction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/compact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compact
         * @description Fold everything but the last turn into the state, now or in the worker.
         */
        post: operations["compact"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/compactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Compactions
         * @description The compactions of a conversation.
         */
        get: operations["list_compactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/continuity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Continuity
         * @description What the conversation could still answer after each compaction that has a continuity score.
         */
        get: operations["list_continuity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compactions/{compaction_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Compaction
         * @description One compaction.
         */
        get: operations["get_compaction"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/verifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Verifications
         * @description The verifications of a conversation's state by a model.
         */
        get: operations["list_verifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/context": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Context
         * @description The context within the policy's budget or the given one; with a query, together with what is recalled for it.
         */
        get: operations["get_context"];
        put?: never;
        /**
         * Assemble Context
         * @description What a model would be sent. The body may bring passages, choose sections, and have a due compaction run first.
         */
        post: operations["assemble_context"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow Events
         * @description Every event once, in order, without a gap between stored and new events.
         */
        get: operations["follow_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/presets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Presets
         * @description Every preset, with the operator's numbers. No key is needed.
         */
        get: operations["list_presets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conversations/{conversation_id}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Conversation Stats
         * @description The statistics of a conversation, with labels.
         */
        get: operations["get_conversation_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Stats
         * @description The statistics of all conversations, with labels.
         */
        get: operations["get_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tokens/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Count Tokens
         * @description Count tokens with the estimator that is used for messages; nothing is stored.
         */
        post: operations["count_tokens"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get Limits
         * @description The limits of the key and of its tenant, and how much of each is left.
         */
        get: operations["get_limits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Audit
         * @description Who did what, in the order in which it happened.
         */
        get: operations["list_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Erase User
         * @description Begin to delete every conversation of an end user, and the keys that only see those.
         *
         *     The keys end at once. The conversations are deleted one after the other; a few take seconds.
         */
        delete: operations["erase_user"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Healthz
         * @description The process answers.
         */
        get: operations["healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Metrics
         * @description What all processes did since this one started: sums over all tenants, without ids or text.
         *
         *     Other machines can read it only if the operator allows that (`THROUGHLINE_METRICS_OPEN`).
         */
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Readyz
         * @description Postgres is needed, read-only to show messages; without Redis or a sweeper everything works, but later.
         */
        get: operations["readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Models
         * @description The values of `model`: `throughline` is the configured model, `throughline/<preset>` the same with a preset.
         */
        get: operations["list_models"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/models/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve Model
         * @description One of these models.
         */
        get: operations["retrieve_model"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/chat/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create Chat Completion
         * @description Answer messages.
         *
         *     Without the name of a conversation (header `X-Conversation-Id`, or one that chat frontends forward; field
         *     `conversation` or `metadata.conversation_id`) nothing is read and nothing is stored. The response header
         *     `X-Throughline` says what was done.
         */
        post: operations["create_chat_completion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create Response
         * @description Answer input.
         *
         *     A response is a turn of a conversation: the one that `conversation` or a header names, the one that
         *     `previous_response_id` belongs to (or a copy of it up to there, if it has gone on since), otherwise a new one. With
         *     `store: false` nothing is stored. The response header `X-Throughline` says what was done.
         */
        post: operations["create_response"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses/input_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Count Response Input
         * @description The estimated number of tokens of a response's input.
         */
        post: operations["count_response_input"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses/compact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compact Response
         * @description Compact input: the result has the last messages of users, word for word, and one item that stands for all input.
         *
         *     Only this key's tenant can use that item, alone or after those messages. With `conversation` (an extension) the
         *     stored conversation itself is compacted.
         */
        post: operations["compact_response"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses/{response_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve Response
         * @description A stored response. As a stream, a response that is still being made is sent too, from its beginning.
         */
        get: operations["retrieve_response"];
        put?: never;
        post?: never;
        /**
         * Delete Response
         * @description Erase a response's output and input, with everything derived from them.
         */
        delete: operations["delete_response"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses/{response_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel Response
         * @description Stop a response that is being made; what was said so far is kept.
         */
        post: operations["cancel_response"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/responses/{response_id}/input_items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Response Input
         * @description The input that a response answered.
         */
        get: operations["list_response_input"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create Openai Conversation
         * @description Create a conversation.
         */
        post: operations["create_openai_conversation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversations/{conversation_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve Openai Conversation
         * @description One conversation, even if it was made through another API.
         */
        get: operations["retrieve_openai_conversation"];
        put?: never;
        /**
         * Update Openai Conversation
         * @description Replace the metadata.
         */
        post: operations["update_openai_conversation"];
        /**
         * Delete Openai Conversation
         * @description Delete a conversation with everything derived.
         */
        delete: operations["delete_openai_conversation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversations/{conversation_id}/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Conversation Items
         * @description The full history as items, never affected by compaction; the newest first by default.
         */
        get: operations["list_conversation_items"];
        put?: never;
        /**
         * Create Conversation Items
         * @description Append items without asking for an answer.
         */
        post: operations["create_conversation_items"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversations/{conversation_id}/items/{item_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve Conversation Item
         * @description One item.
         */
        get: operations["retrieve_conversation_item"];
        put?: never;
        post?: never;
        /**
         * Delete Conversation Item
         * @description Erase the message that an item belongs to, with everything derived from it.
         */
        delete: operations["delete_conversation_item"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * ActiveStats
         * @description Figures of the conversations with the newest messages, at most 100.
         */
        ActiveStats: {
            /** Conversations */
            conversations: number;
            /** Mean Utilization */
            mean_utilization: number | null;
            /** By Status */
            by_status: components["schemas"]["Counted"][];
            /**
             * Levels
             * @description Of their current segments.
             */
            levels: components["schemas"]["LevelStats"][];
        };
        /**
         * AdaptiveThresholds
         * @description Thresholds that adapt to the conversation, as shares of the budget, and the numbers they are computed from.
         */
        AdaptiveThresholds: {
            /** Background */
            background: number;
            /** Target */
            target: number;
            /**
             * Own Background
             * @description The policy's own number.
             */
            own_background: number;
            /** Own Target */
            own_target: number;
            /** @description Null while too few turns are there: the policy's own numbers hold. */
            pace: components["schemas"]["Pace"] | null;
            /**
             * Explanation
             * @description Why they are where they are, in the conversation's language.
             */
            explanation: string;
        };
        /**
         * AllowedTools
         * @description Some of the tools, by name.
         */
        AllowedTools: {
            /**
             * Type
             * @constant
             */
            type: "allowed_tools";
            /**
             * Mode
             * @default auto
             * @enum {string}
             */
            mode?: "none" | "auto" | "required";
            /** Tools */
            tools: components["schemas"]["app__http__openai__settings__NamedTool"][];
        };
        /**
         * Anchor
         * @description A verbatim passage that is never compressed; `original_position` is the `seq` of its message.
         */
        Anchor: {
            /**
             * Id
             * Format: uuid
             */
            id: string;
            /**
             * Type
             * @enum {string}
             */
            type: "commitment" | "decision" | "unresolved_question" | "critical_fact" | "correction";
            /** Content */
            content: string;
            /** Original Position */
            original_position: number;
            /**
             * Offset
             * @description Where it begins in the message's content, in characters.
             */
            offset: number;
            /**
             * Message Id
             * Format: uuid
             */
            message_id: string;
            /**
             * Speaker
             * @enum {string}
             */
            speaker: "user" | "assistant";
            /**
             * Pasted
             * @description It stands in a text that the speaker only shows: not their own word.
             */
            pasted: boolean;
            /**
             * Status
             * @description `withdrawn`: two models agree that it never was an anchor.
             * @enum {string}
             */
            status: "active" | "resolved" | "superseded" | "withdrawn";
            /**
             * Proposed By
             * @description `user`: its status was set to `active` by hand; no model changes it.
             * @enum {string}
             */
            proposed_by: "rule" | "model" | "user";
            /**
             * Superseded By
             * @description The anchor that took its place.
             */
            superseded_by: string | null;
        };
        /**
         * AnchorPatch
         * @description The new status of an anchor.
         */
        AnchorPatch: {
            /**
             * Status
             * @enum {string}
             */
            status: "active" | "resolved" | "superseded" | "withdrawn";
        };
        /**
         * AnswerSchema
         * @description The schema of a structured answer.
         */
        AnswerSchema: {
            /**
             * Name
             * @default output
             */
            name?: string;
            /** Description */
            description?: string | null;
            /** Schema */
            schema?: {
                [key: string]: unknown;
            } | null;
            /** Strict */
            strict?: boolean | null;
        };
        /**
         * Answered
         * @description Probes of one kind.
         */
        Answered: {
            /**
             * Before
             * @description Answered from the context before.
             */
            before: number;
            /**
             * After
             * @description Of those, answered from the context after.
             */
            after: number;
            /**
             * Contradicted
             * @description Of those, answered with something else than the messages say.
             */
            contradicted: number;
        };
        /**
         * AssembledContext
         * @description What a model would be sent.
         */
        AssembledContext: {
            /**
             * Messages
             * @description In the format that was asked for: as the provider's request has them.
             */
            messages: components["schemas"]["ContextMessage"][] | {
                [key: string]: unknown;
            }[];
            /**
             * System
             * @description The system text, for `gemini` and `anthropic`; else it is a message.
             */
            system: string | null;
            /** Sections */
            sections: components["schemas"]["Section"][];
            /** Markers */
            markers: components["schemas"]["Marker"][];
            /**
             * Recalled
             * @description Best first.
             */
            recalled: components["schemas"]["RecalledMessage"][];
            /**
             * Recalled By
             * @description What recall went by; null where no embedding model is set, or nothing was looked for.
             */
            recalled_by: ("words" | "words_and_vectors") | null;
            gauge: components["schemas"]["Gauge"];
            /** Warnings */
            warnings: string[];
            truncated: components["schemas"]["SeqRange"] | null;
            /** @description What `compact: if_needed` ran or waited for. */
            compaction: components["schemas"]["Compaction"] | null;
        };
        /**
         * Attempt
         * @description One model call of a compaction.
         */
        Attempt: {
            /** Model */
            model: string;
            /** Outcome */
            outcome: string;
            /** Reason */
            reason: string | null;
            /** Duration Ms */
            duration_ms: number;
            usage: components["schemas"]["Usage"];
            /**
             * Prompt Version
             * @description Of the prompt and the schema that the model was given. Null for the offline summarizer, which is given none, and for calls made before versions were recorded.
             */
            prompt_version: string | null;
        };
        /**
         * AudioContent
         * @description A piece of audio.
         */
        AudioContent: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "input_audio";
            input_audio: components["schemas"]["GivenAudio"];
        };
        /**
         * AuditEntry
         * @description Who did what, in ids and numbers.
         */
        AuditEntry: {
            /**
             * Id
             * Format: uuid
             */
            id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            /**
             * Actor
             * @description `key`; `open`: a request where no key is asked for; `cli`: the command line; `service`: the service itself, which nobody asked.
             * @enum {string}
             */
            actor: "key" | "open" | "cli" | "service";
            /** Key Id */
            key_id: string | null;
            /**
             * Action
             * @example conversation.deleted
             */
            action: string;
            /** Object Id */
            object_id: string | null;
            /** Data */
            data: {
                [key: string]: unknown;
            };
        };
        /**
         * Breakdown
         * @description How the tokens of a context are distributed; their sum is ``tokens`` of its gauge.
         */
        Breakdown: {
            /** System */
            system: number;
            /**
             * Files
             * @description The attached files, which every context has whole.
             */
            files: number;
            /** State */
            state: number;
            /** Anchors */
            anchors: number;
            /** Digests */
            digests: number;
            /** Held */
            held: number;
            /** Tail */
            tail: number;
            /** Recalled */
            recalled: number;
            /** Pending */
            pending: number;
        };
        /**
         * CacheStats
         * @description Caches that providers were asked to keep; their cost and savings in US dollars.
         */
        CacheStats: {
            /**
             * Availability
             * @description `available`, or who keeps it from being so.
             * @enum {string}
             */
            availability: "available" | "model" | "operator" | "policy";
            /** Availability Label */
            availability_label: string;
            /**
             * Mode
             * @description `policy.cache`, of a conversation.
             */
            mode: ("off" | "auto" | "always") | null;
            /** Made */
            made: number;
            /** Renewed */
            renewed: number;
            /**
             * Used
             * @description Requests that named one.
             */
            used: number;
            /**
             * Ended
             * @description Deleted before their time.
             */
            ended: number;
            /**
             * Lost
             * @description Refused by the provider when they were named or renewed.
             */
            lost: number;
            /**
             * Failed
             * @description That could not be made or renewed.
             */
            failed: number;
            /**
             * Tokens Read
             * @description From these caches.
             */
            tokens_read: number;
            /**
             * Spent Usd
             * @description Processing at the full price and storage, of the caches that were made for the conversation, or for any; null without a known price.
             */
            spent_usd: number | null;
            /**
             * Saved Usd
             * @description Against the full price of `tokens_read`.
             */
            saved_usd: number | null;
            /**
             * Saved Beyond Implicit Usd
             * @description Of it, what the provider's own caching would not have saved, at the measured rate of hits.
             */
            saved_beyond_implicit_usd: number | null;
            /**
             * Net Usd
             * @description `saved_beyond_implicit_usd` − `spent_usd`.
             */
            net_usd: number | null;
            /**
             * Storage Priced On
             * @description The day on which the prices of storage were read.
             */
            storage_priced_on: string | null;
            /** @description Of a conversation whose chat model can be cached. */
            prefix: components["schemas"]["PrefixStats"] | null;
            /**
             * Living
             * @description At most 20, the one used last first.
             */
            living: components["schemas"]["LivingCache"][];
        };
        /**
         * CallItem
         * @description A call of a function by a model.
         */
        CallItem: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "function_call";
            /** Call Id */
            call_id: string;
            /** Name */
            name: string;
            /** Namespace */
            namespace?: string | null;
            /**
             * Arguments
             * @default {}
             */
            arguments?: string;
        };
        /**
         * CallStats
         * @description Model calls of all kinds except chat; the cost takes the price of cached tokens into account.
         */
        CallStats: {
            /** Total */
            total: number;
            /** By Purpose */
            by_purpose: components["schemas"]["Counted"][];
            /** By Outcome */
            by_outcome: components["schemas"]["Counted"][];
            /**
             * By Reason
             * @description Refusals of the gate and failures of the provider.
             */
            by_reason: components["schemas"]["Counted"][];
            /**
             * By Prompt Version
             * @description Calls for summaries.
             */
            by_prompt_version: components["schemas"]["PromptStats"][];
            /**
             * Input Tokens
             * @description Cached ones included.
             */
            input_tokens: number;
            /** Cached Tokens */
            cached_tokens: number;
            /** Output Tokens */
            output_tokens: number;
            /**
             * Cost Usd
             * @description Null where no price is known.
             */
            cost_usd: number | null;
            per_compaction: components["schemas"]["CostOfOne"];
        };
        /**
         * CalledFunction
         * @description The function that was called.
         */
        CalledFunction: {
            /** Name */
            name: string;
            /**
             * Arguments
             * @default {}
             */
            arguments?: string;
        };
        /**
         * ChatAllowedTools
         * @description The tools that may be called.
         */
        ChatAllowedTools: {
            /**
             * Type
             * @constant
             */
            type: "allowed_tools";
            allowed_tools: components["schemas"]["ChatToolSelection"];
        };
        /**
         * ChatCall
         * @description A call in an assistant's message.
         */
        ChatCall: {
            /** Id */
            id: string;
            function: components["schemas"]["CalledFunction"];
        };
        /**
         * ChatCompaction
         * @description A compaction inside the turn progressed or ended.
         */
        ChatCompaction: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "compaction.applied" | "compaction.failed" | "compaction.queued" | "compaction.skipped" | "compaction.started";
            /**
             * Id
             * @description The conversation's own event number; absent: it has none.
             * @default null
             */
            id?: number | null;
            data: components["schemas"]["ChatCompactionData"];
        };
        /**
         * ChatCompactionData
         * @description A compaction inside the turn.
         */
        ChatCompactionData: {
            /**
             * Compaction Id
             * Format: uuid
             */
            compaction_id: string;
            /** Trigger */
            trigger: string;
            /**
             * Ran In
             * @enum {string}
             */
            ran_in: "worker" | "turn" | "request" | "sweeper";
            /**
             * Status
             * @enum {string}
             */
            status: "queued" | "running" | "applied" | "skipped" | "rejected" | "failed" | "superseded";
            /** Reason */
            reason: string | null;
            /** Messages Covered */
            messages_covered: number;
            /** From Seq */
            from_seq: number | null;
            /** To Seq */
            to_seq: number | null;
            /** Tokens Before */
            tokens_before: number | null;
            /** Tokens After */
            tokens_after: number | null;
            /**
             * Duration Ms
             * @default null
             */
            duration_ms?: number | null;
            /** State Version */
            state_version: number | null;
            /**
             * @description Words for the user, where there are some.
             * @default null
             */
            notification?: components["schemas"]["Notification"] | null;
        };
        /**
         * ChatCompletionRequest
         * @description A chat completion. Fields that are not listed are ignored.
         */
        ChatCompletionRequest: {
            /** Model */
            model: string;
            /** Messages */
            messages: components["schemas"]["ChatMessage"][];
            /** Stream */
            stream?: boolean | null;
            stream_options?: components["schemas"]["StreamOptions"] | null;
            /** Tools */
            tools?: components["schemas"]["ChatTool"][] | null;
            /** Tool Choice */
            tool_choice?: ("none" | "auto" | "required") | components["schemas"]["ChatNamedTool"] | components["schemas"]["ChatAllowedTools"] | null;
            /** Parallel Tool Calls */
            parallel_tool_calls?: boolean | null;
            /** Temperature */
            temperature?: number | null;
            /** Top P */
            top_p?: number | null;
            /** Max Tokens */
            max_tokens?: number | null;
            /** Max Completion Tokens */
            max_completion_tokens?: number | null;
            /** Stop */
            stop?: string | string[] | null;
            response_format?: components["schemas"]["ChatFormat"] | null;
            /** Reasoning Effort */
            reasoning_effort?: string | null;
            /** Seed */
            seed?: number | null;
            /** Frequency Penalty */
            frequency_penalty?: number | null;
            /** Presence Penalty */
            presence_penalty?: number | null;
            /** User */
            user?: string | null;
            /** Metadata */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /**
             * Conversation
             * @description Ours: the conversation whose new messages these are.
             */
            conversation?: unknown;
            /**
             * Truncation
             * @description Ours: whether the oldest messages of an answer without a conversation may be left out.
             */
            truncation?: ("auto" | "disabled") | null;
            /** N */
            n?: number | null;
            /** Logprobs */
            logprobs?: boolean | null;
            /** Top Logprobs */
            top_logprobs?: number | null;
            /** Logit Bias */
            logit_bias?: {
                [key: string]: unknown;
            } | null;
            /** Modalities */
            modalities?: string[] | null;
            /** Audio */
            audio?: unknown;
            /** Functions */
            functions?: unknown;
            /** Function Call */
            function_call?: unknown;
            /** Web Search Options */
            web_search_options?: unknown;
            /** Verbosity */
            verbosity?: string | null;
            /** Moderation */
            moderation?: unknown;
        };
        /**
         * ChatFile
         * @description A file of a chat completion.
         */
        ChatFile: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "file";
            file: components["schemas"]["GivenFile"];
        };
        /**
         * ChatFormat
         * @description The format of the answer.
         */
        ChatFormat: {
            /**
             * Type
             * @enum {string}
             */
            type: "text" | "json_object" | "json_schema";
            json_schema?: components["schemas"]["AnswerSchema"] | null;
        };
        /**
         * ChatImage
         * @description An image of a chat completion.
         */
        ChatImage: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "image_url";
            /** Image Url */
            image_url: components["schemas"]["ImageUrl"] | string;
        };
        /**
         * ChatMessage
         * @description One message.
         */
        ChatMessage: {
            /**
             * Role
             * @enum {string}
             */
            role: "system" | "developer" | "user" | "assistant" | "tool";
            /** Name */
            name?: string | null;
            /** Content */
            content?: (string | (components["schemas"]["TextContent"] | components["schemas"]["RefusalContent"] | components["schemas"]["ChatImage"] | components["schemas"]["ResponseImage"] | components["schemas"]["AudioContent"] | components["schemas"]["ChatFile"] | components["schemas"]["ResponseFile"])[]) | null;
            /** Tool Calls */
            tool_calls?: components["schemas"]["ChatCall"][] | null;
            /** Tool Call Id */
            tool_call_id?: string | null;
            /** Refusal */
            refusal?: string | null;
        };
        /**
         * ChatMessageCreated
         * @description A message of the turn was stored; the first of them begins the stream.
         */
        ChatMessageCreated: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "message.created";
            /**
             * Id
             * @description The conversation's own event number; absent: it has none.
             * @default null
             */
            id?: number | null;
            data: components["schemas"]["MessageCreatedData"];
        };
        /**
         * ChatNamedTool
         * @description The tool that has to be called.
         */
        ChatNamedTool: {
            /**
             * Type
             * @constant
             */
            type: "function";
            function: components["schemas"]["ChosenFunction"];
        };
        /**
         * ChatReplySuperseded
         * @description The earlier reply was superseded, since it is made again.
         */
        ChatReplySuperseded: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "message.superseded";
            /**
             * Id
             * @description The conversation's own event number; absent: it has none.
             * @default null
             */
            id?: number | null;
            data: components["schemas"]["ReplyData"];
        };
        /**
         * ChatRequest
         * @description A user's message, or results of the client's tools, or neither: then the message that still waits is answered.
         *
         *     Everything else in the request holds for this turn only.
         */
        ChatRequest: {
            /**
             * Parts
             * @description Texts and media of the user's message.
             */
            parts?: (components["schemas"]["TextPart"] | components["schemas"]["MediaPart"])[];
            /**
             * Content
             * @description May be empty only beside parts.
             */
            content?: string | null;
            /** Tool Results */
            tool_results?: components["schemas"]["ToolResult"][];
            /**
             * Event Type
             * @description `casual`, `initial_objective`, `constraint`, `goal` … or a word of your own.
             * @default casual
             */
            event_type?: string;
            /** Utc Offset */
            utc_offset?: number | null;
            /**
             * Model
             * @description One that the operator allows; the configured chat model when it is left out.
             */
            model?: string | null;
            /**
             * Recall
             * @description For this turn, whatever the policy says.
             */
            recall?: boolean | null;
            /** Passages */
            passages?: components["schemas"]["PassageInput"][];
            /**
             * Instructions
             * @description Stand after the conversation's system prompt.
             */
            instructions?: string | null;
            /**
             * Tools
             * @description A turn in which the model calls one of these ends with `open_calls`.
             */
            tools?: components["schemas"]["ToolInput"][];
            /**
             * Tool Choice
             * @description Among `tools`; what the service offers of its own stays as it is.
             */
            tool_choice?: (("auto" | "none" | "required") | components["schemas"]["app__http__chat_requests__NamedTool"]) | null;
            /** Parallel Tool Calls */
            parallel_tool_calls?: boolean | null;
            response_format?: components["schemas"]["ResponseFormat"] | null;
            /** Temperature */
            temperature?: number | null;
            /** Top P */
            top_p?: number | null;
            /** Max Tokens */
            max_tokens?: number | null;
            /** Stop */
            stop?: string[];
            /** Reasoning Effort */
            reasoning_effort?: ("none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max") | null;
            /** Seed */
            seed?: number | null;
            /** Frequency Penalty */
            frequency_penalty?: number | null;
            /** Presence Penalty */
            presence_penalty?: number | null;
            /** Expected Last Message Id */
            expected_last_message_id?: string | null;
        };
        /**
         * ChatResult
         * @description A turn: the user's message, the reply, and what happened to the context.
         */
        ChatResult: {
            message: components["schemas"]["Message"];
            reply: components["schemas"]["Message"];
            context: components["schemas"]["Gauge"];
            compaction: components["schemas"]["Compaction"] | null;
            /** Recalled */
            recalled: components["schemas"]["Recalled"][];
            /** Warnings */
            warnings: string[];
            /**
             * Status
             * @enum {string}
             */
            status: "completed" | "interrupted" | "requires_action";
            /**
             * Open Calls
             * @description Calls of your tools that `reply` makes, and whose results the next request is to bring.
             */
            open_calls: components["schemas"]["ToolCall"][];
            /**
             * Finish
             * @description Why the model's last step ended.
             * @enum {string}
             */
            finish: "stop" | "length" | "blocked" | "tool_call" | "other";
        };
        /** @description One event of a turn: what stands after `event:`, `id:` and `data:`. */
        ChatStreamEvent: components["schemas"]["ChatMessageCreated"] | components["schemas"]["ChatReplySuperseded"] | components["schemas"]["ChatCompaction"] | components["schemas"]["ContextRecalled"] | components["schemas"]["ReasoningDelta"] | components["schemas"]["ReplyDelta"] | components["schemas"]["ToolCalled"] | components["schemas"]["ReplyEnded"] | components["schemas"]["ReplyFailed"];
        /**
         * ChatTool
         * @description A tool. Only functions are supported.
         */
        ChatTool: {
            /**
             * Type
             * @constant
             */
            type: "function";
            function: components["schemas"]["ClientFunction"];
        };
        /**
         * ChatToolSelection
         * @description Some of the tools, by name, and whether one of them has to be called.
         */
        ChatToolSelection: {
            /**
             * Mode
             * @default auto
             * @enum {string}
             */
            mode?: "none" | "auto" | "required";
            /** Tools */
            tools: components["schemas"]["ChatNamedTool"][];
        };
        /**
         * ChosenFunction
         * @description The function that has to be called.
         */
        ChosenFunction: {
            /** Name */
            name: string;
        };
        /**
         * ClientFunction
         * @description A function of a client.
         */
        ClientFunction: {
            /** Name */
            name: string;
            /** Description */
            description?: string | null;
            /** Parameters */
            parameters?: {
                [key: string]: unknown;
            } | null;
            /** Strict */
            strict?: boolean | null;
        };
        /**
         * CompactRequest
         * @description A manual compaction.
         */
        CompactRequest: {
            /** Focus */
            focus?: string | null;
            /** Up To Message Id */
            up_to_message_id?: string | null;
            /** Keep Tail Messages */
            keep_tail_messages?: number | null;
            /**
             * Dry Run
             * @default false
             */
            dry_run?: boolean;
            /**
             * Wait
             * @default true
             */
            wait?: boolean;
        };
        /**
         * CompactedInputRequest
         * @description Input to be compacted: given items, a stored response's conversation or, as an extension, a conversation.
         */
        CompactedInputRequest: {
            /** Input */
            input?: (string | (components["schemas"]["MessageItem"] | components["schemas"]["CallItem"] | components["schemas"]["ResultItem"] | components["schemas"]["ReasoningItem"] | components["schemas"]["ReferenceItem"] | components["schemas"]["CompactionItem"])[]) | null;
            /** Instructions */
            instructions?: string | null;
            /** Previous Response Id */
            previous_response_id?: string | null;
            /** Conversation */
            conversation?: string | components["schemas"]["NamedConversation"] | null;
            /** Model */
            model: string;
        };
        /**
         * Compaction
         * @description A compaction that is planned, waiting, running or ended.
         *
         *     Tokens are those of the served context, with the same tail.
         */
        Compaction: {
            /**
             * Id
             * @description Null for a dry run, which is not stored.
             */
            id: string | null;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /** Trigger */
            trigger: string;
            /**
             * Ran In
             * @enum {string}
             */
            ran_in: "worker" | "turn" | "request" | "sweeper";
            /** Status */
            status: ("queued" | "running" | "applied" | "skipped" | "rejected" | "failed" | "superseded") | "planned";
            /** Reason */
            reason: string | null;
            /** Strategy */
            strategy: string;
            /** Model */
            model: string | null;
            /** Focus */
            focus: string | null;
            /** Joined */
            joined: boolean;
            /** Attempts */
            attempts: components["schemas"]["Attempt"][];
            /** From Seq */
            from_seq: number | null;
            /** To Seq */
            to_seq: number | null;
            /** Messages Covered */
            messages_covered: number;
            /** Tokens Before */
            tokens_before: number | null;
            /** Tokens After */
            tokens_after: number | null;
            /**
             * Ratio
             * @description tokens_after ÷ tokens_before
             */
            ratio: number | null;
            entries: components["schemas"]["EntryCounts"];
            /** State Version Before */
            state_version_before: number;
            /** State Version After */
            state_version_after: number | null;
            /**
             * Repairs
             * @description What was done to the summary.
             */
            repairs: components["schemas"]["Repair"][];
            /**
             * Prompt Version
             * @description That of the last attempt that has one: of the accepted answer, if there is one.
             */
            prompt_version: string | null;
            /** @description What can still be answered; null where nothing was asked. */
            continuity: components["schemas"]["Continuity"] | null;
            /** Summary */
            summary: string | null;
            usage: components["schemas"]["Usage"];
            /** Cost Usd */
            cost_usd: number | null;
            /** Duration Ms */
            duration_ms: number | null;
            /** Retry Of */
            retry_of: string | null;
            /**
             * Requested At
             * Format: date-time
             */
            requested_at: string;
            /** Started At */
            started_at: string | null;
            /** Finished At */
            finished_at: string | null;
        };
        /**
         * CompactionContinuity
         * @description The score of one compaction.
         */
        CompactionContinuity: {
            /**
             * Compaction Id
             * Format: uuid
             */
            compaction_id: string;
            /** Trigger */
            trigger: string;
            /** Model */
            model: string | null;
            /** From Seq */
            from_seq: number | null;
            /** To Seq */
            to_seq: number | null;
            /** State Version After */
            state_version_after: number | null;
            /** Finished At */
            finished_at: string | null;
            continuity: components["schemas"]["Continuity"];
        };
        /**
         * CompactionData
         * @description A compaction, as it was at the time of the event.
         */
        CompactionData: {
            /**
             * Compaction Id
             * Format: uuid
             */
            compaction_id: string;
            /** Trigger */
            trigger: string;
            /**
             * Ran In
             * @enum {string}
             */
            ran_in: "worker" | "turn" | "request" | "sweeper";
            /**
             * Status
             * @enum {string}
             */
            status: "queued" | "running" | "applied" | "skipped" | "rejected" | "failed" | "superseded";
            /** Reason */
            reason: string | null;
            /** Messages Covered */
            messages_covered: number;
            /** From Seq */
            from_seq: number | null;
            /** To Seq */
            to_seq: number | null;
            /** Tokens Before */
            tokens_before: number | null;
            /** Tokens After */
            tokens_after: number | null;
            /**
             * Duration Ms
             * @default null
             */
            duration_ms?: number | null;
            /** State Version */
            state_version: number | null;
        };
        /**
         * CompactionEvent
         * @description A compaction progressed or ended; `compaction.failed` is also sent for a refused summary.
         */
        CompactionEvent: {
            /** Id */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            notification: components["schemas"]["Notification"] | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "compaction.applied" | "compaction.failed" | "compaction.queued" | "compaction.skipped" | "compaction.started";
            data: components["schemas"]["CompactionData"];
        };
        /**
         * CompactionItem
         * @description Compacted input, as this service gave it out.
         */
        CompactionItem: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "compaction" | "compaction_summary";
            /** Encrypted Content */
            encrypted_content: string;
        };
        /**
         * CompactionStats
         * @description Figures of compactions, from their rows.
         */
        CompactionStats: {
            /** Total */
            total: number;
            /**
             * Applied
             * @description Cycles.
             */
            applied: number;
            /** In Flight */
            in_flight: number;
            /** By Trigger */
            by_trigger: components["schemas"]["Counted"][];
            /** By Status */
            by_status: components["schemas"]["Counted"][];
            /**
             * By Place
             * @description By `ran_in`.
             */
            by_place: components["schemas"]["Counted"][];
            /** By Reason */
            by_reason: components["schemas"]["Counted"][];
            /** Messages Covered */
            messages_covered: number;
            entries: components["schemas"]["EntryCounts"];
            /** Repairs */
            repairs: components["schemas"]["RepairStats"][];
            fidelity: components["schemas"]["FidelityStats"];
            continuity: components["schemas"]["ContinuityStats"];
        };
        /**
         * ContextMessage
         * @description One entry of a context; ``seq`` is null if the service wrote it.
         */
        ContextMessage: {
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /** Content */
            content: string;
            /** Parts */
            parts: {
                [key: string]: unknown;
            }[];
            /** Seq */
            seq: number | null;
            /** Turn */
            turn: number | null;
            /** Event Type */
            event_type: string | null;
            /** Is Protected */
            is_protected: boolean;
        };
        /**
         * ContextRecalled
         * @description Earlier messages were recalled; the model is asked next.
         */
        ContextRecalled: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "context.recalled";
            /**
             * Id
             * @description The conversation's own event number; absent: it has none.
             * @default null
             */
            id?: number | null;
            data: components["schemas"]["ContextRecalledData"];
        };
        /**
         * ContextRecalledData
         * @description What was recalled for the turn so far.
         */
        ContextRecalledData: {
            /**
             * Seqs
             * @description Positions of the messages, in order.
             */
            seqs: number[];
        };
        /**
         * ContextRequest
         * @description The context that a client requests.
         */
        ContextRequest: {
            /** Budget */
            budget?: number | null;
            /** Query */
            query?: string | null;
            /** Passages */
            passages?: components["schemas"]["PassageInput"][];
            /**
             * Compact
             * @description `if_needed`: what is due before a model call is compacted first, as in a turn.
             * @default never
             * @enum {string}
             */
            compact?: "never" | "if_needed";
            /**
             * Format
             * @default plain
             * @enum {string}
             */
            format?: "plain" | "openai" | "gemini" | "anthropic";
            /**
             * @default {
             *       "state": true,
             *       "anchors": true,
             *       "digests": true,
             *       "held": true,
             *       "recalled": true
             *     }
             */
            sections?: components["schemas"]["ContextSections"];
        };
        /**
         * ContextSections
         * @description The sections that a context has. Omitted ones are left out, and the gauge does not count them.
         */
        ContextSections: {
            /**
             * State
             * @default true
             */
            state?: boolean;
            /**
             * Anchors
             * @default true
             */
            anchors?: boolean;
            /**
             * Digests
             * @default true
             */
            digests?: boolean;
            /**
             * Held
             * @default true
             */
            held?: boolean;
            /**
             * Recalled
             * @default true
             */
            recalled?: boolean;
            /**
             * Levels
             * @description The levels that digests may show; the policy's when it is left out.
             */
            levels?: ("detailed" | "brief" | "tags")[] | null;
        };
        /**
         * ContextStats
         * @description The context as it is now.
         */
        ContextStats: {
            /** Utilization */
            utilization: number;
            /** Tokens */
            tokens: number;
            /** Budget */
            budget: number;
            /**
             * Status
             * @enum {string}
             */
            status: "ok" | "warning" | "critical" | "background" | "sync" | "over";
            /** Status Label */
            status_label: string;
            /**
             * History Tokens
             * @description What the next request would weigh without compaction.
             */
            history_tokens: number;
            /**
             * Saved Now
             * @description `history_tokens` − `tokens`.
             */
            saved_now: number;
            /**
             * Saved Share
             * @description `saved_now` ÷ `history_tokens`: by the price of a token, what a query costs less.
             */
            saved_share: number | null;
            cost_per_query: components["schemas"]["CostPerQuery"];
        };
        /**
         * ContextThresholdData
         * @description A context that passed a step, or a message that could not be protected because there is no room.
         */
        ContextThresholdData: {
            /**
             * Status
             * @enum {string}
             */
            status: "ok" | "warning" | "critical" | "background" | "sync" | "over";
            /** Tokens */
            tokens: number;
            /** Budget */
            budget: number;
            /** Utilization */
            utilization: number;
            /**
             * Reason
             * @description With the fields below; else absent.
             * @default null
             */
            reason?: "over_allotment" | null;
            /**
             * Message Id
             * @default null
             */
            message_id?: string | null;
            /**
             * Seq
             * @default null
             */
            seq?: number | null;
            /**
             * Size
             * @description Tokens of the message.
             * @default null
             */
            size?: number | null;
            /**
             * Protected Tokens
             * @default null
             */
            protected_tokens?: number | null;
            /**
             * Limit
             * @description Tokens that may be protected.
             * @default null
             */
            limit?: number | null;
        };
        /**
         * ContextThresholdEvent
         * @description The context grew over a step.
         */
        ContextThresholdEvent: {
            /** Id */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            notification: components["schemas"]["Notification"] | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "context.threshold";
            data: components["schemas"]["ContextThresholdData"];
        };
        /**
         * Continuity
         * @description What a conversation can still answer after a compaction, measured by probes of the folded messages.
         */
        Continuity: {
            /**
             * Before
             * @description Probes that the context before answered.
             */
            before: number;
            /**
             * After
             * @description Of those, the probes that the context after answers.
             */
            after: number;
            /**
             * Recall
             * @description after ÷ before; null without a probe.
             */
            recall: number | null;
            /**
             * Contradiction
             * @description Of `before`, the share answered otherwise; null without a probe.
             */
            contradiction: number | null;
            /**
             * Tone
             * @description Of language and moods of the user, the share that is told; null for none.
             */
            tone: number | null;
            /**
             * Kinds
             * @description By kind of probe.
             */
            kinds: {
                [key: string]: components["schemas"]["Answered"];
            };
        };
        /**
         * ContinuityStats
         * @description What could still be answered after compactions, over the probes of all compactions with a score.
         */
        ContinuityStats: {
            /**
             * Last
             * @description Recall of the newest one.
             */
            last: number | null;
            /** Recall */
            recall: number | null;
            /** Contradiction */
            contradiction: number | null;
            /**
             * Tone
             * @description The mean.
             */
            tone: number | null;
            /**
             * Scored
             * @description Compactions.
             */
            scored: number;
        };
        /**
         * Conversation
         * @description A conversation; ``policy`` is resolved and has every field.
         */
        Conversation: {
            /**
             * Id
             * Format: uuid
             */
            id: string;
            /** Title */
            title: string | null;
            /** User Id */
            user_id: string | null;
            /** Locale */
            locale: string;
            /** System Prompt */
            system_prompt: string;
            /** Preset */
            preset: string;
            /** Preset Version */
            preset_version: number;
            /** State Schema */
            state_schema: string | null;
            /** Compressed At Message Id */
            compressed_at_message_id: string | null;
            /** State Version */
            state_version: number;
            /** Compression Count */
            compression_count: number;
            /** Metadata */
            metadata: {
                [key: string]: unknown;
            };
            /** Message Count */
            message_count: number;
            /** Last Message At */
            last_message_at: string | null;
            context: components["schemas"]["Gauge"];
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
            /** Policy */
            policy: {
                [key: string]: unknown;
            };
            /** Compressed State */
            compressed_state: {
                [key: string]: unknown;
            } | null;
            /** Scratchpad */
            scratchpad: {
                [key: string]: unknown;
            };
            live_context: components["schemas"]["LiveContext"] | null;
        };
        /**
         * ConversationCreate
         * @description A new conversation. Every field is optional.
         */
        ConversationCreate: {
            /** Title */
            title?: string | null;
            /** User Id */
            user_id?: string | null;
            /**
             * Locale
             * @description BCP 47, as in `en` or `pt-BR`.
             * @default en
             */
            locale?: string;
            /**
             * System Prompt
             * @default
             */
            system_prompt?: string;
            /**
             * Preset
             * @description Absent or null: the operator's default, which is `semantic`.
             */
            preset?: string | null;
            /**
             * Preset Version
             * @description That of an exported conversation, whose policy it is to keep. Absent or null: the present one.
             */
            preset_version?: number | null;
            /**
             * Policy
             * @description Fields of the preset's policy.
             */
            policy?: {
                [key: string]: unknown;
            };
            /** Scratchpad */
            scratchpad?: {
                [key: string]: unknown;
            };
            /** Metadata */
            metadata?: {
                [key: string]: unknown;
            };
        };
        /** @description One event of a conversation. */
        ConversationEvent: components["schemas"]["MessageCreatedEvent"] | components["schemas"]["MessageErasedEvent"] | components["schemas"]["ReplyEvent"] | components["schemas"]["ReplyFailedEvent"] | components["schemas"]["ContextThresholdEvent"] | components["schemas"]["CompactionEvent"] | components["schemas"]["VerificationEvent"] | components["schemas"]["ConversationRestoredEvent"] | components["schemas"]["ConversationSetAsideEvent"];
        /**
         * ConversationPatch
         * @description Only given fields change: ``policy`` replaces the overrides, scratchpad and metadata are merged (RFC 7396).
         */
        ConversationPatch: {
            /** Title */
            title?: string | null;
            /**
             * Locale
             * @description BCP 47, as in `en` or `pt-BR`.
             */
            locale?: string;
            /** System Prompt */
            system_prompt?: string;
            /** Preset */
            preset?: string;
            /**
             * Policy
             * @description Fields of the preset's policy.
             */
            policy?: {
                [key: string]: unknown;
            };
            /** Scratchpad */
            scratchpad?: {
                [key: string]: unknown;
            };
            /** Metadata */
            metadata?: {
                [key: string]: unknown;
            };
        };
        /**
         * ConversationRequest
         * @description A new conversation.
         */
        ConversationRequest: {
            /** Items */
            items?: (components["schemas"]["MessageItem"] | components["schemas"]["CallItem"] | components["schemas"]["ResultItem"] | components["schemas"]["ReasoningItem"] | components["schemas"]["ReferenceItem"] | components["schemas"]["CompactionItem"])[] | null;
            /** Metadata */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * ConversationRestoredEvent
         * @description An earlier state was restored as a new version.
         */
        ConversationRestoredEvent: {
            /** Id */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            notification: components["schemas"]["Notification"] | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "conversation.restored";
            data: components["schemas"]["RestoredData"];
        };
        /**
         * ConversationSetAsideEvent
         * @description A conversation was set aside because processes ended during work on it, or was released again.
         */
        ConversationSetAsideEvent: {
            /** Id */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            notification: components["schemas"]["Notification"] | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "conversation.released" | "conversation.set_aside";
            data: components["schemas"]["SetAsideData"];
        };
        /**
         * ConversationStats
         * @description The statistics of a conversation.
         */
        ConversationStats: {
            /**
             * Locale
             * @description The language of the labels.
             */
            locale: string;
            /**
             * Turns
             * @description Turns that are over.
             */
            turns: number;
            compactions: components["schemas"]["CompactionStats"];
            tokens: components["schemas"]["TokenStats"];
            model_calls: components["schemas"]["CallStats"];
            caches: components["schemas"]["CacheStats"];
            expansions: components["schemas"]["ExpansionStats"];
            latency: components["schemas"]["LatencyStats"];
            /**
             * Summary
             * @description Sentences that can be shown as they are.
             */
            summary: string[];
            /**
             * Labels
             * @description What each figure is called, by its path: `tokens.saved`.
             */
            labels?: {
                [key: string]: string;
            };
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            context: components["schemas"]["ContextStats"];
            /**
             * Levels
             * @description Of the current segments.
             */
            levels: components["schemas"]["LevelStats"][];
            last: components["schemas"]["LastCompaction"] | null;
        };
        /**
         * ConversationSummary
         * @description A conversation in a list.
         */
        ConversationSummary: {
            /**
             * Id
             * Format: uuid
             */
            id: string;
            /** Title */
            title: string | null;
            /** User Id */
            user_id: string | null;
            /** Locale */
            locale: string;
            /** System Prompt */
            system_prompt: string;
            /** Preset */
            preset: string;
            /** Preset Version */
            preset_version: number;
            /** State Schema */
            state_schema: string | null;
            /** Compressed At Message Id */
            compressed_at_message_id: string | null;
            /** State Version */
            state_version: number;
            /** Compression Count */
            compression_count: number;
            /** Metadata */
            metadata: {
                [key: string]: unknown;
            };
            /** Message Count */
            message_count: number;
            /** Last Message At */
            last_message_at: string | null;
            context: components["schemas"]["Gauge"];
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Updated At
             * Format: date-time
             */
            updated_at: string;
        };
        /**
         * ConversationUpdate
         * @description New metadata that replaces a conversation's metadata.
         */
        ConversationUpdate: {
            /** Metadata */
            metadata: {
                [key: string]: unknown;
            };
        };
        /**
         * CostOfOne
         * @description Calls for summaries divided by compactions that took effect; calls without a result are paid for too.
         */
        CostOfOne: {
            /**
             * Input Tokens
             * @description Cached ones included.
             */
            input_tokens: number | null;
            /** Cached Tokens */
            cached_tokens: number | null;
            /** Output Tokens */
            output_tokens: number | null;
            /**
             * Cost Usd
             * @description Null where no price is known.
             */
            cost_usd: number | null;
        };
        /**
         * CostPerQuery
         * @description The cost of reading the context once with the configured chat model and no cache; null without a known price.
         */
        CostPerQuery: {
            /**
             * Served Usd
             * @description Of the context as it is served.
             */
            served_usd: number | null;
            /**
             * History Usd
             * @description Of the whole history, without compaction.
             */
            history_usd: number | null;
            /**
             * Saved Usd
             * @description `history_usd` − `served_usd`.
             */
            saved_usd: number | null;
        };
        /**
         * Counted
         * @description The number of one kind.
         */
        Counted: {
            /**
             * Name
             * @description A stable word.
             */
            name: string;
            /**
             * Label
             * @description The same in the reader's language.
             */
            label: string;
            /** Count */
            count: number;
        };
        /**
         * Damage
         * @description One text in the served state that earlier checks damaged.
         */
        Damage: {
            /**
             * Kind
             * @enum {string}
             */
            kind: "quote" | "fragment" | "stale_narrative" | "cut_narrative";
            /** Field */
            field: string;
            /** Entry Id */
            entry_id: string;
            /** Text */
            text: string;
            /**
             * State Version
             * @description The version in which it was damaged.
             */
            state_version: number;
        };
        /**
         * EmptyRequest
         * @description An empty body.
         */
        EmptyRequest: Record<string, never>;
        /**
         * EntryChange
         * @description An entry whose text differs between two versions.
         */
        EntryChange: {
            /** Entry Id */
            entry_id: string;
            /** Field */
            field: string;
            /** Before */
            before: string;
            /** After */
            after: string;
        };
        /**
         * EntryCounts
         * @description What happened to the entries of the state.
         */
        EntryCounts: {
            /** Added */
            added: number;
            /** Kept */
            kept: number;
            /** Superseded */
            superseded: number;
            /** Dropped */
            dropped: number;
            /** Restored By Code */
            restored_by_code: number;
            /** Ungrounded */
            ungrounded: number;
        };
        /**
         * Erasure
         * @description An end user whose conversations are being erased.
         */
        Erasure: {
            /**
             * Id
             * Format: uuid
             */
            id: string;
            /**
             * Requested At
             * Format: date-time
             */
            requested_at: string;
        };
        /**
         * Event
         * @description An event; ``id`` is its number within the conversation, in decimal.
         */
        Event: {
            /** Id */
            id: string;
            /** Type */
            type: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            /** Data */
            data: {
                [key: string]: unknown;
            };
            notification: components["schemas"]["Notification"] | null;
        };
        /**
         * Examination
         * @description What checks of earlier versions of the service damaged in the state that is served.
         */
        Examination: {
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * State Version
             * @description The version that was examined; 0: there is no state.
             */
            state_version: number;
            /** Damages */
            damages: components["schemas"]["Damage"][];
            /**
             * Sound Version
             * @description The newest version before in which nothing is damaged; 0: before the first compaction. Restored and compacted again from there, the state is made anew. Null: nothing is damaged.
             */
            sound_version: number | null;
            /**
             * Messages
             * @description How many messages would be folded again from there.
             */
            messages: number;
            /**
             * Tokens
             * @description What those weigh.
             */
            tokens: number;
            /**
             * By Model
             * @description Whether a language model would summarize them.
             */
            by_model: boolean;
            /**
             * Repairs
             * @description What was mended by code.
             */
            repairs: components["schemas"]["Repair"][];
            /** State Version Now */
            state_version_now: number;
        };
        /**
         * ExaminationRequest
         * @description Whether damage that code can mend is mended too.
         */
        ExaminationRequest: {
            /**
             * Mend
             * @default false
             */
            mend?: boolean;
        };
        /**
         * ExpansionStats
         * @description Figures of expansions.
         */
        ExpansionStats: {
            /** Total */
            total: number;
            /** By Way */
            by_way: components["schemas"]["WayStats"][];
            /** Passages */
            passages: number;
            /** Tokens */
            tokens: number;
            /** Judged */
            judged: number;
            /** Used */
            used: number;
            /**
             * Used Share
             * @description `used` ÷ `judged`.
             */
            used_share: number | null;
        };
        /**
         * FidelityStats
         * @description The share of the exact values in folded messages that were verbatim in what was served right afterwards.
         */
        FidelityStats: {
            /** Last */
            last: number | null;
            /** Mean */
            mean: number | null;
            /** Probes */
            probes: number;
        };
        /**
         * File
         * @description A file that is attached to a conversation.
         */
        File: {
            /**
             * Id
             * Format: uuid
             */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /** Name */
            name: string;
            /** Media Type */
            media_type: string;
            /**
             * Sha256
             * @description Of its bytes, in hexadecimal.
             */
            sha256: string;
            /** Bytes */
            bytes: number;
            /**
             * Tokens
             * @description What it weighs in every context, as estimated.
             */
            tokens: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
        /**
         * FunctionTool
         * @description A function that the client runs.
         */
        FunctionTool: {
            /** Name */
            name: string;
            /** Description */
            description?: string | null;
            /** Parameters */
            parameters?: {
                [key: string]: unknown;
            } | null;
            /** Strict */
            strict?: boolean | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "function";
        };
        /**
         * Gauge
         * @description How full a context is, in tokens; ``utilization`` is tokens divided by budget.
         */
        Gauge: {
            /** Tokens */
            tokens: number;
            /** Budget */
            budget: number;
            /** Window */
            window: number;
            /** Utilization */
            utilization: number;
            /**
             * Status
             * @enum {string}
             */
            status: "ok" | "warning" | "critical" | "background" | "sync" | "over";
            /** Background At */
            background_at: number | null;
            /** Sync At */
            sync_at: number | null;
            /** Tokens Until Compaction */
            tokens_until_compaction: number | null;
            breakdown: components["schemas"]["Breakdown"];
            /**
             * Anchors Behind Marker
             * @description Active anchors for which the block has no room.
             */
            anchors_behind_marker: number;
            /**
             * Target
             * @description What a compaction folds down to, in tokens.
             */
            target: number;
            /** @description What the thresholds follow from; null where they are the policy's own. */
            adaptive: components["schemas"]["AdaptiveThresholds"] | null;
        };
        /**
         * GivenAudio
         * @description Audio data within the request.
         */
        GivenAudio: {
            /** Data */
            data: string;
            /** Format */
            format: string;
        };
        /**
         * GivenFile
         * @description A file within the request.
         */
        GivenFile: {
            /** File Data */
            file_data?: string | null;
            /** File Id */
            file_id?: string | null;
            /** Filename */
            filename?: string | null;
        };
        /**
         * Health
         * @description The process is alive.
         */
        Health: {
            /**
             * Status
             * @default ok
             * @constant
             */
            status?: "ok";
        };
        /**
         * ImageUrl
         * @description The address of an image.
         */
        ImageUrl: {
            /** Url */
            url: string;
            /** Detail */
            detail?: string | null;
        };
        /**
         * Interruption
         * @description Whether a reply was running, and which message it answered.
         */
        Interruption: {
            /** Interrupted */
            interrupted: boolean;
            /** Message Id */
            message_id: string | null;
        };
        /**
         * ItemsRequest
         * @description Items to append.
         */
        ItemsRequest: {
            /** Items */
            items: (components["schemas"]["MessageItem"] | components["schemas"]["CallItem"] | components["schemas"]["ResultItem"] | components["schemas"]["ReasoningItem"] | components["schemas"]["ReferenceItem"] | components["schemas"]["CompactionItem"])[];
        };
        /**
         * KeyLimits
         * @description What a key may request. Without a key, if none is needed, there are no limits.
         */
        KeyLimits: {
            /** Key Id */
            key_id: string | null;
            /**
             * User Id
             * @description The end user whose conversations alone the key sees.
             */
            user_id: string | null;
            /**
             * Stream Seconds
             * @description How long a stream lasts.
             */
            stream_seconds: number | null;
            /** Limits */
            limits: components["schemas"]["LimitStanding"][];
        };
        /**
         * LastCompaction
         * @description The newest compaction that took effect.
         */
        LastCompaction: {
            /**
             * Compaction Id
             * Format: uuid
             */
            compaction_id: string;
            /** Trigger */
            trigger: string;
            /** Trigger Label */
            trigger_label: string;
            /** Ran In */
            ran_in: string;
            /** Model */
            model: string | null;
            /** Attempts */
            attempts: number;
            /** Messages Covered */
            messages_covered: number;
            /** Tokens Before */
            tokens_before: number | null;
            /** Tokens After */
            tokens_after: number | null;
            /** Ratio */
            ratio: number | null;
            /** Duration Ms */
            duration_ms: number | null;
            /**
             * Input Tokens
             * @description Of all its calls, cached ones included.
             */
            input_tokens: number;
            /** Cached Tokens */
            cached_tokens: number;
            /** Output Tokens */
            output_tokens: number;
            /** Cost Usd */
            cost_usd: number | null;
            /** Fidelity */
            fidelity: number | null;
            /**
             * Levels
             * @description Of the segments that it made.
             */
            levels: components["schemas"]["LevelStats"][];
            /** Finished At */
            finished_at: string | null;
        };
        /**
         * LatencyFigures
         * @description How long something took.
         */
        LatencyFigures: {
            /** Count */
            count: number;
            /** Total Ms */
            total_ms: number;
            /** Mean Ms */
            mean_ms: number | null;
            /** P50 Ms */
            p50_ms: number | null;
            /** P95 Ms */
            p95_ms: number | null;
        };
        /**
         * LatencyStats
         * @description How long turns waited, and for what.
         */
        LatencyStats: {
            /** @description Compactions inside turns. */
            compaction: components["schemas"]["LatencyFigures"];
            expansion: components["schemas"]["LatencyFigures"];
            /** @description Whole turns. */
            turn: components["schemas"]["LatencyFigures"];
        };
        /**
         * LevelStats
         * @description Segments at one level of detail.
         */
        LevelStats: {
            /**
             * Level
             * @enum {string}
             */
            level: "L1" | "L2" | "L3";
            /**
             * Name
             * @enum {string}
             */
            name: "full" | "detailed" | "brief" | "tags";
            /** Label */
            label: string;
            /** Segments */
            segments: number;
            /** Tokens */
            tokens: number;
            /** Original Tokens */
            original_tokens: number;
            /** Ratio */
            ratio: number | null;
        };
        /**
         * LimitStanding
         * @description How much of one limit is used; money is in US dollars.
         */
        LimitStanding: {
            /**
             * Name
             * @example requests_per_minute
             */
            name: string;
            /**
             * Of
             * @enum {string}
             */
            of: "tenant" | "key";
            /** Limit */
            limit: number;
            /** Used */
            used: number;
            /** Remaining */
            remaining: number;
            /**
             * Resets In
             * @description Seconds until all of it is there again, if nothing more is asked for.
             */
            resets_in: number;
            /**
             * Retry After
             * @description Seconds until there is room again; 0 while there is.
             */
            retry_after: number;
        };
        /** AnchorList */
        Listing_Anchor_: {
            /** Data */
            data: components["schemas"]["Anchor"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** AuditEntryList */
        Listing_AuditEntry_: {
            /** Data */
            data: components["schemas"]["AuditEntry"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** CompactionContinuityList */
        Listing_CompactionContinuity_: {
            /** Data */
            data: components["schemas"]["CompactionContinuity"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** CompactionList */
        Listing_Compaction_: {
            /** Data */
            data: components["schemas"]["Compaction"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** ConversationSummaryList */
        Listing_ConversationSummary_: {
            /** Data */
            data: components["schemas"]["ConversationSummary"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** FileList */
        Listing_File_: {
            /** Data */
            data: components["schemas"]["File"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** MessageList */
        Listing_Message_: {
            /** Data */
            data: components["schemas"]["Message"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** PresetList */
        Listing_Preset_: {
            /** Data */
            data: components["schemas"]["Preset"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** SearchHitList */
        Listing_SearchHit_: {
            /** Data */
            data: components["schemas"]["SearchHit"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** SegmentList */
        Listing_Segment_: {
            /** Data */
            data: components["schemas"]["Segment"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** StateVersionList */
        Listing_StateVersion_: {
            /** Data */
            data: components["schemas"]["StateVersion"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** UIMessageList */
        Listing_UIMessage_: {
            /** Data */
            data: components["schemas"]["UIMessage"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /** VerificationList */
        Listing_Verification_: {
            /** Data */
            data: components["schemas"]["Verification"][];
            /** Next Cursor */
            next_cursor?: string | null;
            /**
             * Has More
             * @default false
             */
            has_more?: boolean;
        };
        /**
         * LiveContext
         * @description What a stateful chat model's provider keeps of a conversation: everything up to ``through_seq``.
         */
        LiveContext: {
            /** Model */
            model: string;
            /** Response Id */
            response_id: string;
            /** Through Seq */
            through_seq: number;
        };
        /**
         * LivingCache
         * @description A cache that a provider keeps now.
         */
        LivingCache: {
            /** Model */
            model: string;
            /** Tokens */
            tokens: number;
            /**
             * Uses
             * @description Requests that named it.
             */
            uses: number;
            /** Made At */
            made_at: string | null;
            /** Expires At */
            expires_at: string | null;
        };
        /**
         * Marker
         * @description A place in a context that can be expanded.
         */
        Marker: {
            /** Text */
            text: string;
            /** Level */
            level: string;
            /** Segment Id */
            segment_id: string;
        };
        /**
         * MediaPart
         * @description An image, a sound, a file: by address or inline.
         */
        MediaPart: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "media";
            /** Media Type */
            media_type: string;
            /** Url */
            url?: string | null;
            /** Data */
            data?: string | null;
            /** Tokens */
            tokens?: number | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * Message
         * @description One entry of the history; ``turn`` is its position, counted from 0.
         */
        Message: {
            /**
             * Id
             * Format: uuid
             */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /** Seq */
            seq: number;
            /** Turn */
            turn: number;
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /** Content */
            content: string;
            /** Parts */
            parts: {
                [key: string]: unknown;
            }[];
            /** Event Type */
            event_type: string;
            /**
             * Status
             * @enum {string}
             */
            status: "complete" | "interrupted" | "erased" | "superseded";
            /**
             * Is Command
             * @description A typed command or its answer: in the history, and in no context.
             */
            is_command: boolean;
            /** Is Protected */
            is_protected: boolean;
            /**
             * Protected Reason
             * @enum {string}
             */
            protected_reason: "initial_objective" | "explicit_constraint" | "authentication" | "goal_statement" | "system" | "pinned" | "over_allotment" | "compressible";
            /** Token Count */
            token_count: number;
            /** Model */
            model: string | null;
            /** Usage */
            usage: {
                [key: string]: unknown;
            } | null;
            /**
             * Reasoning
             * @description What the model showed of its thoughts, where it showed any: never a part of what it is sent later.
             */
            reasoning: string;
            /** Metadata */
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Utc Offset
             * @description In minutes: that of the time that the client gave; null for UTC. The message's day is that there.
             */
            utc_offset: number | null;
        };
        /**
         * MessageAppend
         * @description One message to append, without a reply.
         */
        MessageAppend: {
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /** Parts */
            parts?: (components["schemas"]["TextPart"] | components["schemas"]["ToolCallPart"] | components["schemas"]["ToolResultPart"] | components["schemas"]["MediaPart"])[];
            /**
             * Content
             * @description May be empty only beside parts.
             * @default
             */
            content?: string;
            /**
             * Event Type
             * @description `casual`, `initial_objective`, `constraint`, `goal` … or a word of your own.
             * @default casual
             */
            event_type?: string;
            /** Metadata */
            metadata?: {
                [key: string]: unknown;
            };
            /** Created At */
            created_at?: string | null;
            /** Model */
            model?: string | null;
            /** Usage */
            usage?: {
                [key: string]: unknown;
            } | null;
            /** Expected Last Message Id */
            expected_last_message_id?: string | null;
        };
        /**
         * MessageBatch
         * @description Messages to append, either all or none; for those from another history, also what happened to them there.
         */
        MessageBatch: {
            /** Messages */
            messages: components["schemas"]["PastMessage"][];
            /** Expected Last Message Id */
            expected_last_message_id?: string | null;
        };
        /**
         * MessageBatchResult
         * @description The appended messages, in order.
         */
        MessageBatchResult: {
            /** Data */
            data: components["schemas"]["Message"][];
        };
        /**
         * MessageCreatedData
         * @description A message that was stored.
         */
        MessageCreatedData: {
            /**
             * Message Id
             * Format: uuid
             */
            message_id: string;
            /** Seq */
            seq: number;
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /**
             * Turn Id
             * @description Only of the first event of a chat's stream.
             * @default null
             */
            turn_id?: string | null;
            /**
             * Reply Id
             * @description Likewise: the id that the reply is going to have.
             * @default null
             */
            reply_id?: string | null;
        };
        /**
         * MessageCreatedEvent
         * @description A message was stored.
         */
        MessageCreatedEvent: {
            /** Id */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            notification: components["schemas"]["Notification"] | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "message.created";
            data: components["schemas"]["MessageCreatedData"];
        };
        /**
         * MessageErasedData
         * @description A message that was erased.
         */
        MessageErasedData: {
            /**
             * Message Id
             * Format: uuid
             */
            message_id: string;
            /** Seq */
            seq: number;
        };
        /**
         * MessageErasedEvent
         * @description A message was erased.
         */
        MessageErasedEvent: {
            /** Id */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            notification: components["schemas"]["Notification"] | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "message.erased";
            data: components["schemas"]["MessageErasedData"];
        };
        /**
         * MessageInput
         * @description A message as a client gives it.
         */
        MessageInput: {
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /** Parts */
            parts?: (components["schemas"]["TextPart"] | components["schemas"]["ToolCallPart"] | components["schemas"]["ToolResultPart"] | components["schemas"]["MediaPart"])[];
            /**
             * Content
             * @description May be empty only beside parts.
             * @default
             */
            content?: string;
            /**
             * Event Type
             * @description `casual`, `initial_objective`, `constraint`, `goal` … or a word of your own.
             * @default casual
             */
            event_type?: string;
            /** Metadata */
            metadata?: {
                [key: string]: unknown;
            };
            /** Created At */
            created_at?: string | null;
            /** Model */
            model?: string | null;
            /** Usage */
            usage?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * MessageItem
         * @description A message of a user, the system or a model.
         */
        MessageItem: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "message";
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "developer";
            /** Content */
            content: string | (components["schemas"]["TextContent"] | components["schemas"]["RefusalContent"] | components["schemas"]["ChatImage"] | components["schemas"]["ResponseImage"] | components["schemas"]["AudioContent"] | components["schemas"]["ChatFile"] | components["schemas"]["ResponseFile"])[];
        };
        /**
         * NamedConversation
         * @description A conversation, by its id.
         */
        NamedConversation: {
            /** Id */
            id: string;
        };
        /**
         * NamespaceTool
         * @description Functions that belong together, and that the client runs too, such as those of one MCP server.
         */
        NamespaceTool: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "namespace";
            /** Name */
            name: string;
            /** Description */
            description?: string | null;
            /** Tools */
            tools: components["schemas"]["FunctionTool"][];
        };
        /**
         * NoBody
         * @description An empty body.
         */
        NoBody: Record<string, never>;
        /**
         * Notification
         * @description A notification for the user.
         */
        Notification: {
            /** Level */
            level: string;
            /** Title */
            title: string;
            /** Message */
            message: string;
            /** Locale */
            locale: string;
        };
        /**
         * OpenAIError
         * @description An error of the routes below ``/v1``.
         */
        OpenAIError: {
            error: components["schemas"]["OpenAIErrorBody"];
        };
        /**
         * OpenAIErrorBody
         * @description What went wrong.
         */
        OpenAIErrorBody: {
            /** Message */
            message: string;
            /**
             * Type
             * @example invalid_request_error
             */
            type: string;
            /**
             * Param
             * @description The field that is out of contract, if it is one.
             */
            param: string | null;
            /**
             * Code
             * @description Stable; clients branch on it.
             */
            code: string | null;
        };
        /**
         * Pace
         * @description How a conversation developed in its newest turns.
         */
        Pace: {
            /** Turns */
            turns: number;
            /**
             * Turn Tokens
             * @description What a turn added on average.
             */
            turn_tokens: number;
            /**
             * Largest Turn
             * @description What the largest of them added, in tokens.
             */
            largest_turn: number;
            /**
             * Turn Seconds
             * @description From turn to turn when it was brisk.
             */
            turn_seconds: number | null;
            /**
             * Compaction Seconds
             * @description The longest of the newest compactions.
             */
            compaction_seconds: number | null;
            /**
             * Cached Share
             * @description Of the tokens sent, the share that came from the provider's cache.
             */
            cached_share: number;
        };
        /**
         * PassageInput
         * @description A passage of the client, to be served next to recalled ones.
         */
        PassageInput: {
            /** Text */
            text: string;
            /**
             * Source
             * @description Where it is from, in your words.
             */
            source: string;
        };
        /**
         * PastMessage
         * @description A message as a client gives it, or as another history contains it.
         */
        PastMessage: {
            /**
             * Status
             * @description As the history that it comes from has it; of one that was erased place, role, time and the ids of tool calls are kept, and nothing else that is given.
             * @default complete
             * @enum {string}
             */
            status?: "complete" | "interrupted" | "erased" | "superseded";
            /**
             * Is Command
             * @description A typed command or its answer: in the history, and in no context.
             * @default false
             */
            is_command?: boolean;
            /**
             * Reasoning
             * @description What its model showed of its thoughts.
             * @default
             */
            reasoning?: string;
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /** Parts */
            parts?: (components["schemas"]["TextPart"] | components["schemas"]["ToolCallPart"] | components["schemas"]["ToolResultPart"] | components["schemas"]["MediaPart"])[];
            /**
             * Content
             * @description May be empty only beside parts.
             * @default
             */
            content?: string;
            /**
             * Event Type
             * @description `casual`, `initial_objective`, `constraint`, `goal` … or a word of your own.
             * @default casual
             */
            event_type?: string;
            /** Metadata */
            metadata?: {
                [key: string]: unknown;
            };
            /** Created At */
            created_at?: string | null;
            /** Model */
            model?: string | null;
            /** Usage */
            usage?: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * PrefixStats
         * @description The beginning of the conversation's requests: system prompt, awareness block and tools.
         */
        PrefixStats: {
            /**
             * Tokens
             * @description As the provider counts them, once it has cached them.
             */
            tokens: number;
            /**
             * Minimum Tokens
             * @description The fewest that the provider caches.
             */
            minimum_tokens: number;
            /**
             * Uses Per Hour
             * @description Of all conversations that begin so; the newest count most.
             */
            uses_per_hour: number | null;
            /**
             * Implicit Hit Rate
             * @description The share of them that the provider had cached by itself; null until it was measured.
             */
            implicit_hit_rate: number | null;
            /**
             * Verdict
             * @description Why there is a cache or none.
             * @enum {string}
             */
            verdict: "off" | "too_small" | "price_unknown" | "hit_rate_unknown" | "does_not_pay" | "pays" | "always" | "alive" | "full";
            /** Verdict Label */
            verdict_label: string;
        };
        /**
         * Preset
         * @description A policy with a name.
         */
        Preset: {
            /** Name */
            name: string;
            /** Title */
            title: string;
            /** Design */
            design: string;
            /** Description */
            description: string;
            /** Is Default */
            is_default: boolean;
            /** Version */
            version: number;
            /** Policy */
            policy: {
                [key: string]: unknown;
            };
            /**
             * Earlier
             * @description The versions before, which conversations made with them keep.
             */
            earlier: components["schemas"]["PresetVersion"][];
        };
        /**
         * PresetVersion
         * @description An earlier version of a preset.
         */
        PresetVersion: {
            /** Version */
            version: number;
            /** Policy */
            policy: {
                [key: string]: unknown;
            };
        };
        /**
         * Problem
         * @description An RFC 9457 problem; some codes have further members (``message_id``, ``limit``, ``breakdown`` …).
         */
        Problem: {
            /**
             * Type
             * @example urn:throughline:problem:not_found
             */
            type: string;
            /** Title */
            title: string;
            /** Status */
            status: number;
            /** Detail */
            detail: string;
            /**
             * Code
             * @description Stable; clients branch on it.
             */
            code: string;
            /** Retryable */
            retryable: boolean;
            /** Request Id */
            request_id: string;
            /** Errors */
            errors?: components["schemas"]["ProblemField"][];
            /**
             * Retry After
             * @description Seconds, as in `Retry-After`; only where that is told.
             * @default null
             */
            retry_after?: number | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * ProblemField
         * @description One invalid field.
         */
        ProblemField: {
            /** Field */
            field: string;
            /** Message */
            message: string;
        };
        /**
         * PromptStats
         * @description Calls for summaries with the same version of the prompt, and their results.
         */
        PromptStats: {
            /**
             * Prompt Version
             * @description Null for the offline summarizer, which is given no prompt, and for calls made before versions were recorded.
             */
            prompt_version: string | null;
            /** Attempts */
            attempts: number;
            /** Accepted */
            accepted: number;
            /**
             * Refused
             * @description By the checks; calls that failed are neither accepted nor refused.
             */
            refused: number;
            /**
             * Asked Again
             * @description Answers of which something was asked about once more.
             */
            asked_again: number;
            /**
             * Input Tokens
             * @description Cached ones included.
             */
            input_tokens: number;
            /** Output Tokens */
            output_tokens: number;
            /**
             * Compactions
             * @description Those that took effect, by the prompt of their last call.
             */
            compactions: number;
            /**
             * Repairs
             * @description Changes of what they wrote, doubts apart.
             */
            repairs: number;
            /**
             * Doubts
             * @description Given up without a proof, stated nowhere, or denied.
             */
            doubts: number;
            /**
             * Fidelity
             * @description Mean share of folded exact values that stood in what was served.
             */
            fidelity: number | null;
        };
        /**
         * Provenance
         * @description Where an entry of a state came from; ``pruned`` is set only in the version whose cap removed it.
         */
        Provenance: {
            /** Entry Id */
            entry_id: string;
            /** Field */
            field: string;
            /** Text */
            text: string;
            /** From Seqs */
            from_seqs: number[];
            /** Since Version */
            since_version: number;
            /**
             * Origins
             * @description Where its sources came from: who said it, a tool, a pasted document.
             */
            origins: ("user" | "assistant" | "system" | "tool" | "document")[];
            /** Superseded */
            superseded: string[];
            /**
             * In Doubt
             * @description Given up without a proof, or stated nowhere: served after the others, marked.
             */
            in_doubt: boolean;
            /**
             * Standing
             * @description Why it is in doubt: unverified (a verifier found it nowhere) or set_aside (a model gave it up). If it was removed: superseded, or null without a successor.
             */
            standing: ("served" | "unverified" | "set_aside" | "superseded") | null;
            /** Pruned */
            pruned: boolean;
        };
        /**
         * Readiness
         * @description The state of what the service depends on. Without Redis it works the same, but notices changes later.
         */
        Readiness: {
            /**
             * Status
             * @enum {string}
             */
            status: "ok" | "degraded";
            /**
             * Postgres
             * @enum {string}
             */
            postgres: "ok" | "read_only";
            /**
             * Redis
             * @enum {string}
             */
            redis: "ok" | "away";
            /**
             * Row Security
             * @enum {string}
             */
            row_security: "on" | "off";
            /**
             * Background
             * @enum {string}
             */
            background: "ok" | "restarting";
        };
        /**
         * ReasoningDelta
         * @description The model shows its reasoning, which is not part of the reply.
         */
        ReasoningDelta: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "reasoning.delta";
            /**
             * Id
             * @description The conversation's own event number; absent: it has none.
             * @default null
             */
            id?: number | null;
            data: components["schemas"]["ReasoningDeltaData"];
        };
        /**
         * ReasoningDeltaData
         * @description A piece of the model's reasoning.
         */
        ReasoningDeltaData: {
            /** Text */
            text: string;
        };
        /**
         * ReasoningItem
         * @description The reasoning of a model; no model of this service reads it.
         */
        ReasoningItem: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "reasoning";
        };
        /**
         * ReasoningSettings
         * @description How much the model reasons.
         */
        ReasoningSettings: {
            /** Effort */
            effort?: string | null;
            /** Summary */
            summary?: ("auto" | "concise" | "detailed") | null;
        };
        /**
         * Recalled
         * @description Recalled messages that follow each other in the history.
         */
        Recalled: {
            /** Segment Id */
            segment_id: string | null;
            /** Level */
            level: string;
            /** Seqs */
            seqs: number[];
        };
        /**
         * RecalledMessage
         * @description One recalled message, and why it was recalled.
         */
        RecalledMessage: {
            /** Segment Id */
            segment_id: string | null;
            /** Level */
            level: string;
            /** Seqs */
            seqs: number[];
            /** Score */
            score: number;
            /**
             * Reasons
             * @description The strongest features, with what each added to the score.
             */
            reasons: {
                [key: string]: number;
            };
        };
        /**
         * ReferenceItem
         * @description A reference to a stored item, by its id.
         */
        ReferenceItem: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "item_reference";
            /** Id */
            id: string;
        };
        /**
         * RefusalContent
         * @description What an assistant said instead of an answer.
         */
        RefusalContent: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "refusal";
            /** Refusal */
            refusal: string;
        };
        /**
         * RegenerateRequest
         * @description How the last reply is made again.
         */
        RegenerateRequest: {
            /**
             * Model
             * @description One that the operator allows; the configured chat model when it is left out.
             */
            model?: string | null;
            /**
             * Recall
             * @description For this turn, whatever the policy says.
             */
            recall?: boolean | null;
            /** Passages */
            passages?: components["schemas"]["PassageInput"][];
            /** Expected Last Message Id */
            expected_last_message_id?: string | null;
        };
        /**
         * Repair
         * @description One change of a summary, made by code, or by the model when it was asked again about its answer.
         */
        Repair: {
            /** Field */
            field: string;
            /**
             * Entry Id
             * @description The entry that it became, or that it is about.
             */
            entry_id: string | null;
            /**
             * Before
             * @description As the model wrote it; empty for what was added, and once a source was erased.
             */
            before: string;
            /**
             * After
             * @description What stands there now; null: nothing does.
             */
            after: string | null;
            /**
             * Reason
             * @enum {string}
             */
            reason: "novel_value" | "borrowed_value" | "order" | "narrative_line" | "set_aside" | "kept" | "date_added" | "passage_named" | "value_restored" | "shortened" | "misplaced_quote" | "contradicted" | "not_stated" | "dropped" | "supported";
        };
        /**
         * RepairStats
         * @description Changes of summaries with the same reason, in answers to the same version of the prompt.
         */
        RepairStats: {
            /** Reason */
            reason: string;
            /** Label */
            label: string;
            /** Prompt Version */
            prompt_version: string | null;
            /** Count */
            count: number;
        };
        /**
         * ReplyData
         * @description A reply, and the message that it answers.
         */
        ReplyData: {
            /**
             * Message Id
             * Format: uuid
             */
            message_id: string;
            /** Seq */
            seq: number;
            /**
             * In Reply To
             * Format: uuid
             */
            in_reply_to: string;
        };
        /**
         * ReplyDelta
         * @description The reply goes on.
         */
        ReplyDelta: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "reply.delta";
            /**
             * Id
             * @description The conversation's own event number; absent: it has none.
             * @default null
             */
            id?: number | null;
            data: components["schemas"]["ReplyDeltaData"];
        };
        /**
         * ReplyDeltaData
         * @description A piece of the reply.
         */
        ReplyDeltaData: {
            /** Text */
            text: string;
        };
        /**
         * ReplyEnded
         * @description The turn is over.
         */
        ReplyEnded: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "reply.completed" | "reply.interrupted";
            /**
             * Id
             * @description The conversation's own event number; absent: it has none.
             * @default null
             */
            id?: number | null;
            data: components["schemas"]["ChatResult"];
        };
        /**
         * ReplyEvent
         * @description A reply was stored, or was replaced by another try.
         */
        ReplyEvent: {
            /** Id */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            notification: components["schemas"]["Notification"] | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "message.superseded" | "reply.completed" | "reply.interrupted";
            data: components["schemas"]["ReplyData"];
        };
        /**
         * ReplyFailed
         * @description The turn failed; nothing comes after it.
         */
        ReplyFailed: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "reply.failed";
            /**
             * Id
             * @description The conversation's own event number; absent: it has none.
             * @default null
             */
            id?: number | null;
            data: components["schemas"]["Problem"];
        };
        /**
         * ReplyFailedData
         * @description A message that got no reply.
         */
        ReplyFailedData: {
            /**
             * Message Id
             * Format: uuid
             */
            message_id: string;
            /**
             * Turn Id
             * Format: uuid
             */
            turn_id: string;
            /**
             * Code
             * @description Of the problem.
             */
            code: string;
        };
        /**
         * ReplyFailedEvent
         * @description A turn ended without a reply.
         */
        ReplyFailedEvent: {
            /** Id */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            notification: components["schemas"]["Notification"] | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "reply.failed";
            data: components["schemas"]["ReplyFailedData"];
        };
        /**
         * Requested
         * @description The fields that responses and the count of their input share.
         */
        Requested: {
            /** Input */
            input?: (string | (components["schemas"]["MessageItem"] | components["schemas"]["CallItem"] | components["schemas"]["ResultItem"] | components["schemas"]["ReasoningItem"] | components["schemas"]["ReferenceItem"] | components["schemas"]["CompactionItem"])[]) | null;
            /** Instructions */
            instructions?: string | null;
            /** Previous Response Id */
            previous_response_id?: string | null;
            /** Conversation */
            conversation?: string | components["schemas"]["NamedConversation"] | null;
            /** Model */
            model?: string | null;
            /** Tools */
            tools?: (components["schemas"]["FunctionTool"] | components["schemas"]["NamespaceTool"])[] | null;
            /** Tool Choice */
            tool_choice?: ("none" | "auto" | "required") | components["schemas"]["app__http__openai__settings__NamedTool"] | components["schemas"]["AllowedTools"] | null;
            /** Parallel Tool Calls */
            parallel_tool_calls?: boolean | null;
            text?: components["schemas"]["TextSettings"] | null;
            reasoning?: components["schemas"]["ReasoningSettings"] | null;
            /** Truncation */
            truncation?: ("auto" | "disabled") | null;
        };
        /**
         * ResponseFile
         * @description A file of a response's input.
         */
        ResponseFile: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "input_file";
            /** File Data */
            file_data?: string | null;
            /** File Url */
            file_url?: string | null;
            /** File Id */
            file_id?: string | null;
            /** Filename */
            filename?: string | null;
        };
        /**
         * ResponseFormat
         * @description The form of the reply: `json_schema` needs a `schema`.
         */
        ResponseFormat: {
            /**
             * Type
             * @enum {string}
             */
            type: "text" | "json_object" | "json_schema";
            /**
             * Name
             * @default output
             */
            name?: string;
            /**
             * Description
             * @default
             */
            description?: string;
            /**
             * Schema
             * @description JSON Schema of an object.
             */
            schema?: {
                [key: string]: unknown;
            } | null;
            /**
             * Strict
             * @description Whether the model has to be held to the schema.
             */
            strict?: boolean | null;
        };
        /**
         * ResponseImage
         * @description An image of a response's input.
         */
        ResponseImage: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "input_image";
            /** Image Url */
            image_url?: string | null;
            /** File Id */
            file_id?: string | null;
            /** Detail */
            detail?: string | null;
        };
        /**
         * ResponseRequest
         * @description A response. Fields that are not listed are ignored.
         */
        ResponseRequest: {
            /** Input */
            input?: (string | (components["schemas"]["MessageItem"] | components["schemas"]["CallItem"] | components["schemas"]["ResultItem"] | components["schemas"]["ReasoningItem"] | components["schemas"]["ReferenceItem"] | components["schemas"]["CompactionItem"])[]) | null;
            /** Instructions */
            instructions?: string | null;
            /** Previous Response Id */
            previous_response_id?: string | null;
            /** Conversation */
            conversation?: string | components["schemas"]["NamedConversation"] | null;
            /** Model */
            model?: string | null;
            /** Tools */
            tools?: (components["schemas"]["FunctionTool"] | components["schemas"]["NamespaceTool"])[] | null;
            /** Tool Choice */
            tool_choice?: ("none" | "auto" | "required") | components["schemas"]["app__http__openai__settings__NamedTool"] | components["schemas"]["AllowedTools"] | null;
            /** Parallel Tool Calls */
            parallel_tool_calls?: boolean | null;
            text?: components["schemas"]["TextSettings"] | null;
            reasoning?: components["schemas"]["ReasoningSettings"] | null;
            /** Truncation */
            truncation?: ("auto" | "disabled") | null;
            /** Stream */
            stream?: boolean | null;
            /** Store */
            store?: boolean | null;
            /** Metadata */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** Temperature */
            temperature?: number | null;
            /** Top P */
            top_p?: number | null;
            /** Presence Penalty */
            presence_penalty?: number | null;
            /** Frequency Penalty */
            frequency_penalty?: number | null;
            /** Max Output Tokens */
            max_output_tokens?: number | null;
            /** Include */
            include?: string[] | null;
            /** Safety Identifier */
            safety_identifier?: string | null;
            /** Prompt Cache Key */
            prompt_cache_key?: string | null;
            /** User */
            user?: string | null;
            /** Background */
            background?: boolean | null;
            /** Max Tool Calls */
            max_tool_calls?: number | null;
            /** Top Logprobs */
            top_logprobs?: number | null;
            /** Generate */
            generate?: boolean | null;
            /** Prompt Cache Options */
            prompt_cache_options?: unknown;
            /** Prompt */
            prompt?: unknown;
            /** Moderation */
            moderation?: unknown;
        };
        /**
         * RestoreRequest
         * @description Which state is restored, as a new version.
         */
        RestoreRequest: {
            /**
             * State Version
             * @description 0: as before the first compaction, with nothing covered.
             */
            state_version: number;
        };
        /**
         * RestoredData
         * @description The new version, and the version whose content it has.
         */
        RestoredData: {
            /** State Version */
            state_version: number;
            /** Restored From */
            restored_from: number;
        };
        /**
         * ResultItem
         * @description The result of a function.
         */
        ResultItem: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "function_call_output";
            /** Call Id */
            call_id: string;
            /** Output */
            output: string | (components["schemas"]["TextContent"] | components["schemas"]["RefusalContent"] | components["schemas"]["ChatImage"] | components["schemas"]["ResponseImage"] | components["schemas"]["AudioContent"] | components["schemas"]["ChatFile"] | components["schemas"]["ResponseFile"])[];
        };
        /**
         * SearchHit
         * @description A message that matches a query.
         */
        SearchHit: {
            /**
             * Message Id
             * Format: uuid
             */
            message_id: string;
            /** Seq */
            seq: number;
            /**
             * Segment Id
             * @description The segment that it is folded into.
             */
            segment_id?: string | null;
            /**
             * Snippet
             * @description A passage of the original, as it stands there.
             */
            snippet: string;
            /**
             * Score
             * @description 0 to 1, beside other hits of the same query.
             */
            score: number;
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant" | "system" | "tool";
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
        /**
         * Section
         * @description A range of a context, and where it came from.
         */
        Section: {
            /** Kind */
            kind: string;
            /** Level */
            level: string | null;
            /** Segment Id */
            segment_id: string | null;
            /** Seqs */
            seqs: number[];
            /** Tokens */
            tokens: number;
        };
        /**
         * Segment
         * @description A stretch of folded messages at one level of detail, or one of the lists `earlier` and `anchors`.
         */
        Segment: {
            /** Segment Id */
            segment_id: string;
            /** Topic */
            topic: string;
            /**
             * From Seq
             * @description Of a list: of what this page shows; null when that is nothing.
             */
            from_seq: number | null;
            /** To Seq */
            to_seq: number | null;
            /** Started At */
            started_at: string | null;
            /** Ended At */
            ended_at: string | null;
            /**
             * Message Count
             * @description Commands and erased messages left out.
             */
            message_count: number;
            /**
             * Is Current
             * @description Whether the present state covers it; after a restore it need not.
             */
            is_current: boolean;
            /**
             * Level
             * @description What `content` or `messages` hold: in a list the nearest one there is.
             * @enum {string}
             */
            level: "full" | "detailed" | "brief" | "tags";
            /**
             * Content
             * @description The level's text; pages put together are the whole. Empty at `full`.
             */
            content: string;
            /**
             * Messages
             * @description At `full`: the originals, whole, in order, commands left out.
             */
            messages: components["schemas"]["Message"][];
            /**
             * Anchors
             * @description The active ones in it.
             */
            anchors: components["schemas"]["Anchor"][];
            /**
             * Expansion Markers
             * @description What leads on from here: deeper, or from a list.
             */
            expansion_markers: components["schemas"]["Marker"][];
            /**
             * Token Count
             * @description What this page weighs.
             */
            token_count: number;
            /**
             * Made By
             * @description `extractive`, or the name of the model that wrote it.
             */
            made_by: string;
            /** Truncated */
            truncated: boolean;
            /**
             * Next Cursor
             * @description `after` of the next page.
             */
            next_cursor: string | null;
        };
        /**
         * SegmentRequest
         * @description Which segment, by its id or its exact range, and which level of it to make; `full` always exists.
         */
        SegmentRequest: {
            /** Segment Id */
            segment_id?: string | null;
            /** From Seq */
            from_seq?: number | null;
            /** To Seq */
            to_seq?: number | null;
            /**
             * Level
             * @enum {string}
             */
            level: "full" | "detailed" | "brief" | "tags";
        };
        /**
         * SeqRange
         * @description Messages by position, inclusive.
         */
        SeqRange: {
            /** From Seq */
            from_seq: number;
            /** To Seq */
            to_seq: number;
        };
        /**
         * ServiceStats
         * @description The statistics of all conversations of the tenant; deleted ones are no longer counted.
         */
        ServiceStats: {
            /**
             * Locale
             * @description The language of the labels.
             */
            locale: string;
            /**
             * Turns
             * @description Turns that are over.
             */
            turns: number;
            compactions: components["schemas"]["CompactionStats"];
            tokens: components["schemas"]["TokenStats"];
            model_calls: components["schemas"]["CallStats"];
            caches: components["schemas"]["CacheStats"];
            expansions: components["schemas"]["ExpansionStats"];
            latency: components["schemas"]["LatencyStats"];
            /**
             * Summary
             * @description Sentences that can be shown as they are.
             */
            summary: string[];
            /**
             * Labels
             * @description What each figure is called, by its path: `tokens.saved`.
             */
            labels?: {
                [key: string]: string;
            };
            /** Since */
            since: string | null;
            active: components["schemas"]["ActiveStats"];
        };
        /**
         * SetAsideData
         * @description What was done with a conversation's texts when processes ended during that work, and how many processes ended.
         */
        SetAsideData: {
            /**
             * Reason
             * @enum {string}
             */
            reason: "append" | "context" | "search" | "expansion" | "erasure" | "compaction" | "examination";
            /** Crashes */
            crashes: number;
        };
        /**
         * StateDifference
         * @description What changed from version `a` to version `b`.
         */
        StateDifference: {
            /** A */
            a: number;
            /** B */
            b: number;
            /** Added */
            added: components["schemas"]["Provenance"][];
            /** Removed */
            removed: components["schemas"]["Provenance"][];
            /** Changed */
            changed: components["schemas"]["EntryChange"][];
        };
        /**
         * StateVersion
         * @description One version of a conversation's state.
         */
        StateVersion: {
            /** Version */
            version: number;
            /** State */
            state: {
                [key: string]: unknown;
            };
            /** State Schema */
            state_schema: string;
            /** Provenance */
            provenance: components["schemas"]["Provenance"][];
            /**
             * Repairs
             * @description What was done to the summary that it was made from.
             */
            repairs: components["schemas"]["Repair"][];
            /**
             * Made By
             * @enum {string}
             */
            made_by: "compaction" | "restore" | "erasure" | "verification";
            /**
             * Verified
             * @description By code alone (exact); a model is going to (pending); a model did (model).
             * @enum {string}
             */
            verified: "exact" | "pending" | "model";
            verification: components["schemas"]["VerificationCounts"] | null;
            /** Compaction Id */
            compaction_id: string | null;
            /** Boundary Seq */
            boundary_seq: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
        /**
         * StreamOptions
         * @description How the answer is streamed.
         */
        StreamOptions: {
            /** Include Usage */
            include_usage?: boolean | null;
        };
        /**
         * TextContent
         * @description Text, under any of the names that this API has for it.
         */
        TextContent: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "input_text" | "output_text" | "reasoning_text" | "summary_text" | "text";
            /** Text */
            text: string;
        };
        /**
         * TextFormat
         * @description The format of the answer.
         */
        TextFormat: {
            /**
             * Name
             * @default output
             */
            name?: string;
            /** Description */
            description?: string | null;
            /** Schema */
            schema?: {
                [key: string]: unknown;
            } | null;
            /** Strict */
            strict?: boolean | null;
            /**
             * Type
             * @default text
             * @enum {string}
             */
            type?: "text" | "json_object" | "json_schema";
        };
        /**
         * TextPart
         * @description Text in addition to ``content``.
         */
        TextPart: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "text";
            /** Text */
            text: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * TextSettings
         * @description Settings of the answer's text.
         */
        TextSettings: {
            format?: components["schemas"]["TextFormat"] | null;
            /** Verbosity */
            verbosity?: string | null;
        };
        /**
         * TokenCount
         * @description The number of tokens, by the script-aware estimator.
         */
        TokenCount: {
            /** Tokens */
            tokens: number;
        };
        /**
         * TokenCountRequest
         * @description What to count: a text, or messages.
         */
        TokenCountRequest: {
            /** Text */
            text?: string | null;
            /** Messages */
            messages?: components["schemas"]["MessageInput"][] | null;
        };
        /**
         * TokenStats
         * @description Sums over compactions that took effect; `saved` is `before` − `after`, with the same tail.
         */
        TokenStats: {
            /** Before */
            before: number;
            /** After */
            after: number;
            /** Saved */
            saved: number;
            /** Saved Per Turn */
            saved_per_turn: number | null;
            /** Ratio */
            ratio: number | null;
        };
        /**
         * ToolCall
         * @description A call of one of the client's tools.
         */
        ToolCall: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Arguments */
            arguments: {
                [key: string]: unknown;
            };
        };
        /**
         * ToolCallPart
         * @description A call of a tool by a model.
         */
        ToolCallPart: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "tool_call";
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Arguments */
            arguments: unknown;
        } & {
            [key: string]: unknown;
        };
        /**
         * ToolCalled
         * @description An open call of one of the client's tools. One event for each such call, just before the end.
         */
        ToolCalled: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "tool.called";
            /**
             * Id
             * @description The conversation's own event number; absent: it has none.
             * @default null
             */
            id?: number | null;
            data: components["schemas"]["ToolCall"];
        };
        /**
         * ToolInput
         * @description A tool of the client, for this turn only.
         */
        ToolInput: {
            /** Name */
            name: string;
            /**
             * Description
             * @default
             */
            description?: string;
            /**
             * Parameters
             * @description JSON Schema of the arguments.
             */
            parameters?: {
                [key: string]: unknown;
            };
        };
        /**
         * ToolResult
         * @description The result of a tool of the client.
         */
        ToolResult: {
            /** Tool Call Id */
            tool_call_id: string;
            /**
             * Content
             * @description A text, or any JSON.
             */
            content: unknown;
        };
        /**
         * ToolResultPart
         * @description The result of a tool.
         */
        ToolResultPart: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "tool_result";
            /** Tool Call Id */
            tool_call_id: string;
            /** Name */
            name?: string | null;
            /** Content */
            content: unknown;
        } & {
            [key: string]: unknown;
        };
        /**
         * UIMessage
         * @description One entry of the history as a message of the AI SDK (``?format=ui``).
         */
        UIMessage: {
            /** Id */
            id: string;
            /**
             * Role
             * @enum {string}
             */
            role: "system" | "user" | "assistant";
            /** Metadata */
            metadata: {
                [key: string]: unknown;
            };
            /** Parts */
            parts: {
                [key: string]: unknown;
            }[];
        };
        /**
         * UiMessage
         * @description The last message of a chat.
         */
        UiMessage: {
            /** Id */
            id: string;
            /**
             * Role
             * @enum {string}
             */
            role: "user" | "assistant" | "system";
            /** Parts */
            parts: components["schemas"]["UiPart"][];
        };
        /**
         * UiPart
         * @description A part of a UI message; which fields it has depends on its type.
         */
        UiPart: {
            /** Type */
            type: string;
            /** Text */
            text?: string | null;
            /** Url */
            url?: string | null;
            /** Mediatype */
            mediaType?: string | null;
            /** Filename */
            filename?: string | null;
            /** Toolcallid */
            toolCallId?: string | null;
            /** State */
            state?: string | null;
            /** Output */
            output?: unknown;
            /** Errortext */
            errorText?: string | null;
            /** Providerexecuted */
            providerExecuted?: boolean | null;
        };
        /**
         * UiRequest
         * @description The body that ``DefaultChatTransport`` sends, or one with only the last message.
         */
        UiRequest: {
            /**
             * Trigger
             * @default submit-message
             * @enum {string}
             */
            trigger?: "submit-message" | "regenerate-message";
            /** @description The last message. */
            message?: components["schemas"]["UiMessage"] | null;
            /**
             * Messages
             * @description All of them: without `message` the last one counts.
             */
            messages?: unknown[];
            /** Messageid */
            messageId?: string | null;
            /** Utc Offset */
            utc_offset?: number | null;
            /** Model */
            model?: string | null;
            /** Recall */
            recall?: boolean | null;
            /** Instructions */
            instructions?: string | null;
            /** Passages */
            passages?: components["schemas"]["PassageInput"][];
            /**
             * Tools
             * @description Of the frontend, as in `POST …/chat`: calls of them are left open.
             */
            tools?: components["schemas"]["ToolInput"][];
            /** Tool Choice */
            tool_choice?: (("auto" | "none" | "required") | components["schemas"]["app__http__chat_requests__NamedTool"]) | null;
        };
        /**
         * Usage
         * @description Tokens and money, as the provider reported them.
         */
        Usage: {
            /** Input Tokens */
            input_tokens: number;
            /** Output Tokens */
            output_tokens: number;
            /** Cached Tokens */
            cached_tokens: number;
            /** Cost Usd */
            cost_usd: number | null;
        };
        /**
         * Verification
         * @description A verification of a version of the state that waits, runs or has ended.
         */
        Verification: {
            /**
             * Id
             * Format: uuid
             */
            id: string;
            /**
             * State Version
             * @description The version that is judged. While it waits, a later one may take its place.
             */
            state_version: number;
            /**
             * Status
             * @enum {string}
             */
            status: "queued" | "running" | "done" | "failed" | "stale" | "skipped";
            /** Reason */
            reason: string | null;
            /**
             * Model
             * @description Null until a model has answered.
             */
            model: string | null;
            /**
             * Claims
             * @description How many claims were judged; null unless it is `done`.
             */
            claims: number | null;
            /**
             * Changed
             * @description Whether its verdicts led to a new version of the state.
             */
            changed: boolean;
            usage: components["schemas"]["Usage"];
            /** Cost Usd */
            cost_usd: number | null;
            /**
             * Requested At
             * Format: date-time
             */
            requested_at: string;
            /** Finished At */
            finished_at: string | null;
        };
        /**
         * VerificationCounts
         * @description How a model judged the claims of a version.
         */
        VerificationCounts: {
            /** Model */
            model: string;
            /** Prompt Version */
            prompt_version: string;
            /** Claims */
            claims: number;
            /** Supported */
            supported: number;
            /**
             * Contradicted
             * @description With a quote that stands in a message: these changed the state.
             */
            contradicted: number;
            /** Not Stated */
            not_stated: number;
            /**
             * Unproven
             * @description Contradictions without such a quote, and support of what was cut: they changed nothing.
             */
            unproven: number;
            /** Unanswered */
            unanswered: number;
            usage: components["schemas"]["Usage"];
        };
        /**
         * VerificationData
         * @description A verification that has ended.
         */
        VerificationData: {
            /**
             * Verification Id
             * Format: uuid
             */
            verification_id: string;
            /**
             * State Version
             * @description The version that was judged.
             */
            state_version: number;
            /**
             * Status
             * @enum {string}
             */
            status: "queued" | "running" | "done" | "failed" | "stale" | "skipped";
            /** Reason */
            reason: string | null;
            /**
             * Claims
             * @description How many claims were judged; null unless it is `done`.
             */
            claims: number | null;
            /**
             * Changed
             * @description Whether its verdicts led to a new version of the state.
             */
            changed: boolean;
        };
        /**
         * VerificationEvent
         * @description A verification of the state ended: its verdicts were applied, or it came to nothing.
         */
        VerificationEvent: {
            /** Id */
            id: string;
            /**
             * Conversation Id
             * Format: uuid
             */
            conversation_id: string;
            /**
             * Occurred At
             * Format: date-time
             */
            occurred_at: string;
            notification: components["schemas"]["Notification"] | null;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "verification.finished";
            data: components["schemas"]["VerificationData"];
        };
        /**
         * WayStats
         * @description Expansions of one kind.
         */
        WayStats: {
            /**
             * Name
             * @enum {string}
             */
            name: "explicit" | "search" | "automatic";
            /** Label */
            label: string;
            /** Count */
            count: number;
            /** Passages */
            passages: number;
            /** Tokens */
            tokens: number;
            /**
             * Judged
             * @description Of which it is known whether a reply drew on them.
             */
            judged: number;
            /** Used */
            used: number;
        };
        /**
         * NamedTool
         * @description The one tool that has to be called.
         */
        app__http__chat_requests__NamedTool: {
            /** Name */
            name: string;
        };
        /**
         * NamedTool
         * @description A tool, by its name: the one that a model is offered, or that of a function beside its namespace's.
         */
        app__http__openai__settings__NamedTool: {
            /**
             * Type
             * @constant
             */
            type: "function";
            /** Name */
            name: string;
            /** Namespace */
            namespace?: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    list_conversations: {
        parameters: {
            query?: {
                user_id?: string | null;
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_ConversationSummary_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    create_conversation: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ConversationCreate"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_conversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_conversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    patch_conversation: {
        parameters: {
            query?: never;
            header?: {
                "If-Match"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConversationPatch"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_usage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Gauge"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_states: {
        parameters: {
            query?: {
                a?: number | null;
                b?: number | null;
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_StateVersion_"] | components["schemas"]["StateDifference"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    restore_state: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
                "If-Match"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    release_conversation: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EmptyRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    examine_state: {
        parameters: {
            query?: never;
            header?: {
                "If-Match"?: string | null;
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ExaminationRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Examination"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    export_conversation: {
        parameters: {
            query?: {
                /** @description `json`: everything, with states and anchors; `markdown`: what was said. */
                format?: "json" | "markdown";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file, as it is read. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                    "text/markdown": string;
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_messages: {
        parameters: {
            query?: {
                /** @description `ui`: as messages of the AI SDK; `limit` counts stored messages, and no answer is cut in two. */
                format?: "plain" | "ui";
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Message_"] | components["schemas"]["Listing_UIMessage_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    append_message: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessageAppend"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    append_messages: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessageBatch"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessageBatchResult"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    erase_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    search_messages: {
        parameters: {
            query: {
                /** @description Words; a phrase in quotes is found as it stands. */
                q: string;
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_SearchHit_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pin_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    unpin_message: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_files: {
        parameters: {
            query?: {
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_File_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    attach_file: {
        parameters: {
            query: {
                /** @description Of the file, as models and people see it. */
                name: string;
                /** @description What it weighs, where you know it; sound and film need it, a text has none. */
                tokens?: number | null;
            };
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        /** @description The bytes of the file, under its own `Content-Type`: text/* and JSON, XML, YAML, TOML, JavaScript, SQL as application/…, in UTF-8; application/pdf; image/png, jpeg, gif, webp; audio/wav, mpeg, aac, ogg, flac, mp4; video/mp4, webm, quicktime. */
        requestBody: {
            content: {
                "*/*": string;
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["File"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_file: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
                file_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["File"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    remove_file: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
                file_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_file_content: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
                file_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its bytes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_anchors: {
        parameters: {
            query?: {
                type?: ("commitment" | "decision" | "unresolved_question" | "critical_fact" | "correction") | null;
                status?: ("active" | "resolved" | "superseded" | "withdrawn") | null;
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Anchor_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    patch_anchor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
                anchor_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AnchorPatch"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Anchor"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_segments: {
        parameters: {
            query?: {
                level?: "detailed" | "brief" | "tags";
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Segment_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    make_level: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SegmentRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Segment"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    expand_segment: {
        parameters: {
            query?: {
                /** @description `full`: the original messages. */
                level?: "full" | "detailed" | "brief" | "tags";
                /** @description The most that a page weighs; at least one message is. */
                max_tokens?: number | null;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
            };
            header?: never;
            path: {
                conversation_id: string;
                segment_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Segment"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    chat: {
        parameters: {
            query?: never;
            header?: {
                /** @description Of notifications in a stream; else the conversation's `locale`. */
                "Accept-Language"?: string | null;
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChatRequest"];
            };
        };
        responses: {
            /** @description With `Accept: text/event-stream`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ChatStreamEvent"];
                };
            };
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatResult"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    interrupt_chat: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EmptyRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Interruption"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    follow_turn: {
        parameters: {
            query?: never;
            header?: {
                /** @description Of notifications in a stream; else the conversation's `locale`. */
                "Accept-Language"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events of the turn, as `POST` streams them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ChatStreamEvent"];
                };
            };
            /** @description No turn runs. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    regenerate_reply: {
        parameters: {
            query?: never;
            header?: {
                /** @description Of notifications in a stream; else the conversation's `locale`. */
                "Accept-Language"?: string | null;
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RegenerateRequest"];
            };
        };
        responses: {
            /** @description With `Accept: text/event-stream`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ChatStreamEvent"];
                };
            };
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatResult"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    answer_ui_message: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UiRequest"];
            };
        };
        responses: {
            /** @description The UI message stream, version 1; `[DONE]` ends it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    resume_ui_stream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The UI message stream, version 1; `[DONE]` ends it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            /** @description No turn runs. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_all_compactions: {
        parameters: {
            query?: {
                status?: ("queued" | "running" | "applied" | "skipped" | "rejected" | "failed" | "superseded") | null;
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Compaction_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    retry_compaction: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EmptyRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    compact: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CompactRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description Queued: `wait` was false. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_compactions: {
        parameters: {
            query?: {
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Compaction_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_continuity: {
        parameters: {
            query?: {
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_CompactionContinuity_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_compaction: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                compaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compaction"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_verifications: {
        parameters: {
            query?: {
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Verification_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_context: {
        parameters: {
            query?: {
                budget?: number | null;
                query?: string | null;
                format?: "plain" | "openai" | "gemini" | "anthropic";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AssembledContext"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    assemble_context: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ContextRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AssembledContext"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    follow_events: {
        parameters: {
            query?: {
                /** @description The id of the last event seen; absent = from the first. */
                after?: string | null;
                /** @description Of the events so far at most so many, the newest. */
                newest?: number | null;
            };
            header?: {
                /** @description Wins over `after`. */
                "Last-Event-ID"?: string | null;
                /** @description Of notifications; else the conversation's `locale`. */
                "Accept-Language"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Server-sent events, one `ConversationEvent` each. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ConversationEvent"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_presets: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_Preset_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_conversation_stats: {
        parameters: {
            query?: never;
            header?: {
                /** @description The language of labels; else the conversation's `locale`. */
                "Accept-Language"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConversationStats"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_stats: {
        parameters: {
            query?: {
                /** @description Only what ended from then on, and what is under way; without an offset: UTC. */
                since?: string | null;
            };
            header?: {
                /** @description The language of labels; else the conversation's `locale`. */
                "Accept-Language"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServiceStats"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    count_tokens: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenCountRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenCount"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_limits: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyLimits"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_audit: {
        parameters: {
            query?: {
                limit?: number;
                /** @description `next_cursor` of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing_AuditEntry_"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    erase_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erasure"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    healthz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Prometheus' text format. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description An RFC 9457 problem; `code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_models: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    retrieve_model: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                model: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    create_chat_completion: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChatCompletionRequest"];
            };
        };
        responses: {
            /** @description With `stream: true` as events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                    "text/event-stream": unknown;
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    create_response: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResponseRequest"];
            };
        };
        responses: {
            /** @description With `stream: true` as events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                    "text/event-stream": unknown;
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    count_response_input: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Requested"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    compact_response: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompactedInputRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    retrieve_response: {
        parameters: {
            query?: {
                stream?: boolean;
                /** @description The last event that is not sent again. */
                starting_after?: number | null;
            };
            header?: never;
            path: {
                response_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description With `stream=true` as events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                    "text/event-stream": unknown;
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    delete_response: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                response_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    cancel_response: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                response_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NoBody"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    list_response_input: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The id of the last item of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                response_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    create_openai_conversation: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ConversationRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    retrieve_openai_conversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    update_openai_conversation: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConversationUpdate"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    delete_openai_conversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    list_conversation_items: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The id of the last item of the page before. */
                after?: string | null;
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    create_conversation_items: {
        parameters: {
            query?: never;
            header?: {
                /** @description The same key and body give the first response again. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                conversation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ItemsRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    retrieve_conversation_item: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
                item_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
    delete_conversation_item: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                conversation_id: string;
                item_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description An error in the form of OpenAI's API. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenAIError"];
                };
            };
        };
    };
}
