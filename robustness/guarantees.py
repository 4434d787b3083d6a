"""What the product promises, in one table: each promise with the tests that prove it, what measures it, and what it leaves out.

docs/reference/guarantees.md is made from this and from the stored figures; a test walks it, so that no promise names a proof
that is not there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    says: str
    proved_by: tuple[str, ...]  # "file::test", below tests/
    measured_by: tuple[
        str, ...
    ] = ()  # parts of `python -m trust`; of several tables one is named by how its title begins
    without: str = ""  # what it does not cover


GUARANTEES: dict[str, tuple[Guarantee, ...]] = {
    "What is written": (
        Guarantee(
            "A crash at any moment leaves the old state or the new one: what was acknowledged is there, nothing is half there, "
            "and nobody has to repair anything.",
            (
                "live/faults/test_kills.py::test_whoever_is_killed_has_lost_nothing_and_the_next_needs_no_repair",
                "test_embedded.py::test_a_death_between_indexes_and_truth_changes_nothing",
                "test_artefacts.py::test_a_crash_between_the_two_renames_is_mended_on_open",
            ),
            ("kills",),
            "A power cut: processes are killed, the machine is not. A disk that says it has stored what it has not.",
        ),
        Guarantee(
            "A full, broken or read-only disk is told in one error with a hint; what was there before stays readable.",
            (
                "live/faults/test_faults.py::test_a_fault_is_told_or_not_noticed_and_nothing_acknowledged_is_lost",
                "test_embedded_damage.py::test_a_full_disk_is_no_reason_to_make_the_text_index_anew",
                "test_cli.py::test_a_failing_disk_is_reported_as_one",
            ),
            ("faults",),
        ),
        Guarantee(
            "One writer at a time, however many processes try: the second waits, then says why it cannot write. Readers go on "
            "and see one generation, whole.",
            (
                "test_embedded.py::test_a_second_writer_waits_and_then_says_why_it_cannot_write",
                "live/test_readers_while_writing.py::test_two_readers_see_whole_generations_while_one_writes",
                "test_concurrency.py::test_threads_that_read_see_one_generation_whole_while_one_writes",
            ),
            ("soak: What was written",),
            "Folders on network file systems without locks.",
        ),
        Guarantee(
            "Long work that was cut short goes on where it was: `grade`, batch jobs, builds on workers.",
            (
                "test_grade_pipeline.py::test_killed_in_a_stage_it_goes_on_with_that_stage",
                "test_batch.py::test_a_run_that_was_cut_short_goes_on_with_its_finished_blocks",
                "live/test_grade_model.py::test_a_server_that_dies_half_way_loses_nothing_that_was_done",
            ),
            ("kills",),
            "`fit` begins anew: it takes minutes.",
        ),
        Guarantee(
            "Same seed, same bytes: collections, gates, benchmarks, results of workers.",
            (
                "test_controlled.py::test_another_process_with_another_hash_seed_makes_the_same_bytes",
                "test_model.py::test_the_same_data_and_seed_give_the_same_bytes",
                "test_grade_pipeline.py::test_the_same_seed_gives_the_same_bytes",
                "live/test_dask.py::test_the_commands_write_the_same_bytes_on_workers",
            ),
            (),
            "Other versions of the packages, or another processor: their arithmetic differs in the last bits.",
        ),
        Guarantee(
            "Damage is noticed: what is not as its manifest says is refused, and what can be derived again is made anew.",
            (
                "test_artefacts.py::test_an_altered_file_is_refused",
                "test_gate.py::test_a_damaged_gate_is_refused",
                "test_embedded_damage.py::test_a_damaged_text_index_is_made_anew_from_the_truth",
                "test_embedded_damage.py::test_damage_inside_the_truth_is_said_to_be_damage",
            ),
            ("fuzz",),
            "Hashes tell damage, not who made a file: there are no signatures.",
        ),
        Guarantee(
            "Every format has a version: another one is refused with the command that makes it anew, never guessed at.",
            (
                "test_artefacts.py::test_another_format_version_is_refused_with_the_command_that_rebuilds",
                "test_embedded_damage.py::test_a_store_of_a_newer_format_is_not_read",
                "test_gate.py::test_a_newer_gate_is_refused",
            ),
        ),
    ),
    "What comes in": (
        Guarantee(
            "Whatever a reader, a command or an endpoint is given, it is accepted or refused in our own words: no traceback, "
            "no hang, no 5xx.",
            (
                "test_fuzz.py::test_fresh_inputs_are_accepted_or_refused",
                "test_fuzz.py::test_what_was_found_once_is_refused",
                "live/test_serve.py::test_every_response_matches_the_openapi_document",
                "test_service_errors.py::test_a_hostile_body_never_crashes_the_service",
            ),
            ("fuzz",),
        ),
        Guarantee(
            "Whatever a stranger could make large or long has a bound: records, bodies, lines, texts, hits, headers, time.",
            (
                "test_records.py::test_a_record_over_the_limit_ends_the_reading",
                "test_hostile_files.py::test_a_line_without_end_costs_no_more_than_a_line_may",
                "test_gate.py::test_a_huge_text_costs_no_more_than_its_beginning",
                "live/test_serve.py::test_slow_clients_and_garbage_get_a_response_and_are_disconnected",
                "live/test_serve.py::test_clients_that_do_not_read_are_disconnected",
                "test_service_errors.py::test_a_compressed_body_is_rejected",
            ),
            ("fuzz",),
            "The number of documents of a library, which is yours to decide.",
        ),
        Guarantee(
            "Nothing is unpickled, evaluated or run: a gate or a library of a stranger is data. Its arrays, networks and paths "
            "are looked at before they are used.",
            (
                "test_architecture.py::test_the_repository_keeps",
                "test_hostile_files.py::test_no_code_of_the_package_unpickles_or_evaluates",
                "test_hostile_files.py::test_a_network_that_means_harm_is_refused",
                "test_hostile_files.py::test_an_array_of_objects_is_never_unpickled",
                "test_artefacts.py::test_a_manifest_cannot_point_outside_its_folder",
            ),
            ("fuzz",),
            "Holes in onnxruntime, SQLite and tantivy, which read these files. A gate of a stranger may also simply be wrong.",
        ),
        Guarantee(
            "Memory stays bounded however long a stream is: collections, batches, answers that nobody reads.",
            (
                "test_controlled.py::test_documents_stream_in_bounded_memory",
                "test_service_streaming.py::test_a_line_without_end_is_not_kept",
                "test_service_streaming.py::test_unread_output_waits_in_order",
                "live/test_dask.py::test_the_reader_forgets_the_blocks_that_are_done",
            ),
            ("soak: What grows",),
        ),
    ),
    "What texts may do": (
        Guarantee(
            "A text that gives orders to the gate moves it no more than neutral text of the same length.",
            (
                "test_injection.py::test_an_attack_moves_no_more_than_neutral_text",
                "test_injection.py::test_all_attacks_together_turn_no_more_verdicts_than_neutral_text",
                "test_stuffing_filter.py::test_an_order_in_every_hit_is_as_good_as_one_in_the_first",
            ),
            ("attack_eval: Claims and orders", "attack_eval: Claims and orders, a hardened gate"),
            "A text that holds the question's names or words, where the gate is not hardened: see the table of stuffing below.",
        ),
        Guarantee(
            "Names, words or copies of the question in documents move a hardened gate less than two points over neutral text.",
            (
                "test_stuffing_filter.py::test_a_stuffed_document_is_not_read_and_the_others_are",
                "test_stuffing_filter.py::test_a_stuffed_document_brings_a_hardened_gate_nothing",
            ),
            ("attack_eval: Stuffing, disguises, floods and lies of metadata, a hardened gate",),
            "False statements in plain words, and documents that are called as the question's names.",
        ),
        Guarantee(
            "A text cannot steer `ask`: what a model is shown stays inside its fence, and an obedient model changes no action.",
            (
                "test_ask_injection.py::test_what_a_model_is_shown_keeps_every_attack_inside_the_fence",
                "test_ask_injection.py::test_an_obedient_model_changes_no_action_and_no_answer",
            ),
            (),
            "A false sentence in plain words is believed: we check whether evidence is there, not whether it is true.",
        ),
        Guarantee(
            "On the page, what documents say stays text.",
            ("live/test_page.py::test_what_documents_say_stays_text",),
        ),
        Guarantee(
            "What a language model says is held to a form, a budget and a deadline; without sense in it the rules go on.",
            (
                "test_ask_faulty_server.py::test_ask_ends_within_its_budget_with_an_honest_outcome",
                "test_ask_faulty_server.py::test_a_model_that_insists_on_nonsense_is_not_believed",
                "live/test_grade_model.py::test_whatever_the_server_does_rules_can_go_on",
            ),
        ),
    ),
    "What is said": (
        Guarantee(
            "A threshold under promise keeps it: over many splits it is broken in at most the share that was agreed.",
            (
                "test_policy.py::test_over_200_splits_the_promise_is_broken_in_at_most_delta_of_them",
                "test_policy.py::test_in_the_worst_world_where_every_threshold_is_a_hair_too_risky_it_is_still_broken_in_at_most_delta",
                "test_policy.py::test_fewer_questions_than_could_ever_prove_it_keep_no_promise_and_the_policy_says_so",
            ),
            (),
            "Questions of another kind than those it was chosen on: drift is watched, and told.",
        ),
        Guarantee(
            "Gold labels never reach what thinks: no chain of imports leads there.",
            (
                "test_architecture.py::test_the_repository_keeps",
                "test_architecture.py::test_a_planted_violation_is_seen",
            ),
        ),
        Guarantee(
            "Threads, tasks, forks and processes around one gate and one library hear what one alone hears.",
            (
                "test_concurrency.py::test_threads_hear_what_one_alone_hears",
                "test_concurrency.py::test_tasks_of_an_event_loop_hear_what_one_alone_hears",
                "test_concurrency.py::test_forked_children_share_a_loaded_gate_and_an_open_library",
                "test_concurrency.py::test_processes_hear_what_one_alone_hears",
            ),
            (),
            "A fork while another thread is inside onnxruntime or tantivy, models that run on several threads, and Qdrant's "
            "client: fork first, or spawn. Python without its lock.",
        ),
        Guarantee(
            "A journey can be walked again from its file, to the same bytes.",
            ("test_tracing.py::test_many_journeys_in_one_file_replay_to_the_same_bytes",),
        ),
    ),
    "The service": (
        Guarantee(
            "It listens on this machine alone unless there are keys, and then everybody shows one; without keys nobody writes.",
            (
                "test_service_keys.py::test_other_machines_are_served_only_with_a_key",
                "test_service_errors.py::test_writing_needs_keys",
                "test_service_errors.py::test_a_revoked_key_stops_working_at_once",
            ),
            (),
            "TLS: put a proxy in front of it.",
        ),
        Guarantee(
            "Keys are kept as hashes; who reads the file cannot use it.",
            ("test_service_keys.py::test_a_token_gives_access_and_its_file_does_not",),
        ),
        Guarantee(
            "No text of a question or a document is in the log, in the metrics, in the trace of OpenTelemetry or in an error, "
            "unless asked for.",
            (
                "test_service_routes.py::test_the_log_has_one_line_per_request_and_no_text",
                "test_service_routes.py::test_invalid_values_are_named_by_field_and_not_repeated",
                "test_service_errors.py::test_an_internal_error_hides_its_details",
                "test_otel.py::test_a_verdict_is_an_evaluation_event_without_any_text",
            ),
        ),
        Guarantee(
            "Every request that was taken in is answered, also when the service is told to stop; too many are turned "
            "away at once.",
            (
                "live/test_serve.py::test_a_shutdown_under_load_answers_every_accepted_request",
                "live/test_serve.py::test_too_many_requests_get_429",
                "live/test_serve.py::test_a_worker_that_dies_is_replaced",
            ),
            ("soak: What was answered", "faults"),
            "Requests inside a worker that is killed: their connection breaks, and what was acknowledged before is there.",
        ),
        Guarantee(
            "Under mixed load with updates beside it nothing grows: memory, handles, threads, files.",
            ("live/test_soak.py::test_mixed_load_with_updates_beside_it_loses_and_leaks_nothing",),
            ("soak: What grows",),
        ),
    ),
    "Many machines": (
        Guarantee(
            "Any node of a Qdrant cluster may be killed while others read and write: nothing is lost, and reads go on.",
            (
                "live/test_qdrant_faults.py::test_any_node_may_be_killed_while_others_read_and_write",
            ),
            (),
            "Two nodes of three at once.",
        ),
        Guarantee(
            "A worker of a batch job may be killed: the result is the same.",
            (
                "live/test_dask.py::test_a_worker_killed_in_the_middle_changes_nothing",
                "live/test_dask.py::test_a_worker_that_would_say_something_else_refuses",
            ),
            (),
            "Dask trusts its network: anyone who reaches a scheduler runs code on its workers. Keep it private.",
        ),
    ),
    "What is installed": (
        Guarantee(
            "Every package is pinned, and can be installed by hash.",
            (
                "test_supply_chain.py::test_the_lock_is_what_the_constraints_say_and_has_a_hash_for_everything",
            ),
            ("supply: Pinned",),
            "`make test` installs by pin, and by hash with LOCKED=1.",
        ),
        Guarantee(
            "Every licence is one that is allowed: none asks that what uses it be published under the same terms.",
            ("test_supply_chain.py::test_every_installed_package_has_a_licence_that_is_allowed",),
            ("supply: Licences",),
            "What packages say of themselves; files inside them are not read.",
        ),
        Guarantee(
            "The core needs the base install alone.",
            (
                "test_supply_chain.py::test_the_core_builds_searches_checks_and_asks_with_every_extra_absent",
            ),
            ("supply: A base install",),
        ),
        Guarantee(
            "Nobody is told that it is used: it opens no connection that was not asked for. onnxruntime's reports are "
            "switched off.",
            ("test_supply_chain.py::test_nothing_is_told_to_anybody_and_nothing_left_behind",),
            (),
            "A program that imports onnxruntime before suffice; extras with reports of their own (Haystack, DeepEval, Ragas).",
        ),
    ),
}
