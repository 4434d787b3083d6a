"""What suffice guarantees, in one table: the tests that prove each guarantee, what measures it, and what it excludes.

docs/reference/guarantees.md is generated from this table and the stored figures. A test checks that every
proof exists.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    says: str
    proved_by: tuple[str, ...]  # "file::test", below tests/ or packages/
    # Parts of `python -m robustness`, or "part: how the title of one of its tables begins".
    measured_by: tuple[str, ...] = ()
    without: str = ""  # what it does not cover


def path_of(test: str) -> str:
    """Where the file lies, from the root of the repository."""
    return test if test.startswith("packages/") else f"tests/{test}"


GUARANTEES: dict[str, tuple[Guarantee, ...]] = {
    "Data on disk": (
        Guarantee(
            "A crash at any moment leaves the old state or the new one: acknowledged writes are there, nothing is half written, and nothing needs repair.",
            (
                "live/faults/test_kills.py::test_whoever_is_killed_has_lost_nothing_and_the_next_needs_no_repair",
                "test_embedded.py::test_a_crash_between_indexes_and_database_changes_nothing",
                "test_artefacts.py::test_a_crash_between_the_two_renames_is_repaired_on_open",
            ),
            ("kills",),
            "Power cuts: processes are killed, the machine is not. Disks that acknowledge writes they did not store.",
        ),
        Guarantee(
            "A full, broken or read-only disk gives one error with a hint; existing data stays readable.",
            (
                "live/faults/test_faults.py::test_a_fault_is_told_or_not_noticed_and_nothing_acknowledged_is_lost",
                "test_embedded_damage.py::test_a_full_disk_does_not_rebuild_the_text_index",
                "test_cli.py::test_a_failing_disk_is_reported_as_one",
            ),
            ("faults",),
        ),
        Guarantee(
            "One writer at a time, however many processes try: the second one waits, then reports why it cannot write. Readers continue and always see one complete generation.",
            (
                "test_embedded.py::test_a_second_writer_waits_and_then_says_why_it_cannot_write",
                "live/test_readers_while_writing.py::test_two_readers_see_whole_generations_while_one_writes",
                "test_concurrency.py::test_threads_that_read_see_one_generation_whole_while_one_writes",
            ),
            ("soak: What was written",),
            "Folders on network file systems without locks.",
        ),
        Guarantee(
            "Interrupted long jobs resume: `grade`, batch jobs, builds on workers.",
            (
                "packages/suffice-grade/tests/test_benchmark_pipeline.py::test_killed_in_a_stage_it_goes_on_with_that_stage",
                "test_batch.py::test_a_run_that_was_cut_short_goes_on_with_its_finished_blocks",
                "live/test_grade_model.py::test_a_server_that_dies_half_way_loses_nothing_that_was_done",
            ),
            ("kills",),
            "`fit` starts over: it takes minutes.",
        ),
        Guarantee(
            "Same seed, same bytes: collections, gates, benchmarks, results of workers.",
            (
                "research/test_controlled.py::test_another_process_with_another_hash_seed_makes_the_same_bytes",
                "test_model.py::test_the_same_data_and_seed_give_the_same_bytes",
                "packages/suffice-grade/tests/test_benchmark_pipeline.py::test_the_same_seed_gives_the_same_bytes_and_a_second_run_only_what_a_setting_changes",
                "live/test_dask.py::test_the_commands_write_the_same_bytes_on_workers",
            ),
            (),
            "Other package versions or another processor: their arithmetic differs in the last bits.",
        ),
        Guarantee(
            "Damage is detected: a file that does not match its manifest is refused, and derived data is rebuilt.",
            (
                "test_artefacts.py::test_an_altered_file_is_an_error",
                "test_gate.py::test_a_damaged_gate_is_refused",
                "test_embedded_damage.py::test_a_damaged_text_index_is_rebuilt_from_the_database",
                "test_embedded_damage.py::test_damage_inside_the_database_is_reported",
            ),
            ("fuzz",),
            "Hashes detect damage, not authorship: there are no signatures.",
        ),
        Guarantee(
            "Every format has a version. Another version is refused with the command that rebuilds it.",
            (
                "test_artefacts.py::test_another_format_version_is_an_error_with_the_rebuild_command",
                "test_embedded_damage.py::test_a_store_of_a_newer_format_is_not_read",
                "test_gate.py::test_a_newer_gate_is_refused",
            ),
        ),
    ),
    "Untrusted input": (
        Guarantee(
            "Every loader, command and endpoint accepts or refuses any input with a proper error: no traceback, no hang, no 5xx.",
            (
                "test_fuzz.py::test_fresh_inputs_are_accepted_or_refused",
                "test_fuzz.py::test_what_was_found_once_is_refused",
                "live/test_serve.py::test_every_response_matches_the_openapi_document",
                "test_service_errors.py::test_a_hostile_body_never_crashes_the_service",
            ),
            ("fuzz",),
        ),
        Guarantee(
            "Everything a stranger could make large is bounded: records, bodies, lines, texts, hits, headers, time.",
            (
                "test_records.py::test_a_record_over_the_limit_ends_the_reading",
                "test_hostile_files.py::test_an_endless_line_costs_no_more_than_the_limit",
                "test_gate.py::test_a_huge_text_costs_no_more_than_its_beginning",
                "live/test_serve.py::test_slow_clients_and_garbage_get_a_response_and_are_disconnected",
                "test_service_errors.py::test_a_compressed_body_is_rejected",
            ),
            ("fuzz",),
            "The number of documents in a library: you decide that.",
        ),
        Guarantee(
            "Nothing is unpickled, evaluated or executed: a gate or library from a stranger is data. Its arrays, networks and paths are checked before use.",
            (
                "test_architecture.py::test_the_repository_keeps",
                "test_hostile_files.py::test_no_code_of_the_package_unpickles_or_evaluates",
                "test_hostile_files.py::test_a_malicious_network_is_an_error",
                "test_hostile_files.py::test_an_array_of_objects_is_never_unpickled",
                "test_artefacts.py::test_a_manifest_cannot_point_outside_its_folder",
            ),
            ("fuzz",),
            "Vulnerabilities in onnxruntime, SQLite and tantivy, which read these files. A stranger's gate may also simply be wrong.",
        ),
        Guarantee(
            "Memory stays bounded however long a stream is: collections, batches, responses that nobody reads.",
            (
                "research/test_controlled.py::test_documents_stream_in_bounded_memory",
                "test_service_streaming.py::test_a_line_without_end_is_not_kept",
                "test_service_streaming.py::test_unread_output_waits_in_order",
                "live/test_dask.py::test_the_reader_forgets_the_blocks_that_are_done",
            ),
            ("soak: What grows",),
        ),
    ),
    "Untrusted text": (
        Guarantee(
            "A text that gives orders to the gate changes its verdict no more than neutral text of the same length.",
            (
                "test_injection.py::test_an_attack_moves_no_more_than_neutral_text",
                "test_injection.py::test_all_attacks_together_turn_no_more_verdicts_than_neutral_text",
                "test_shared_sentences.py::test_an_order_in_every_hit_changes_nothing",
            ),
            ("claim_eval", "attack_eval: Claims and orders, a hardened gate"),
            "The same order in every hit, if it is worded differently each time or is a line without a full stop. Texts that contain "
            "the question's names or words, if the gate is not hardened: see the table on stuffing.",
        ),
        Guarantee(
            "Names, words or copies of the question in documents move a hardened gate less than two points compared with neutral text.",
            (
                "test_stuffing_filter.py::test_a_stuffed_document_is_not_read_and_the_others_are",
                "test_stuffing_filter.py::test_a_stuffed_document_brings_a_hardened_gate_nothing",
            ),
            ("attack_eval: Stuffing, disguises, floods and false metadata, a hardened gate",),
            "False statements in plain words, and documents titled after entities in the question.",
        ),
        Guarantee(
            "A text cannot steer `ask`: in prompts it stays inside its fence, and what it orders is never the answer.",
            (
                "test_ask_injection.py::test_prompts_keep_every_attack_inside_the_fence",
                "test_ask_injection.py::test_an_obedient_model_does_not_bring_in_the_answer_of_an_attack",
            ),
            (),
            "False sentences in plain words: suffice checks whether evidence is there, not whether it is true. A model that obeys can cost the answer.",
        ),
        Guarantee(
            "Hits are quoted to the judge behind a gate as data; whatever it says moves the odds by a bounded amount.",
            (
                "test_model_judge.py::test_the_prompt_quotes_hits_as_data_and_is_bounded",
                "test_judge.py::test_no_opinion_moves_the_odds_beyond_the_bound",
            ),
            (),
            "A judge that obeys an order in a hit; then the bound holds.",
        ),
        Guarantee(
            "A judge that is dead, slow or talks nonsense leaves the gate's own verdict, and the verdict says so.",
            (
                "test_judge.py::test_a_judge_that_fails_leaves_the_verdict_of_the_gate",
                "test_model_judge.py::test_a_bad_server_gives_no_opinion",
            ),
        ),
        Guarantee(
            "The page shows documents as text, never as markup.",
            ("live/test_page.py::test_what_documents_say_stays_text",),
        ),
        Guarantee(
            "A language model's output has a schema, a budget and a deadline; if it is unusable, the rules take over.",
            (
                "test_ask_faulty_server.py::test_ask_ends_within_its_budget_and_says_what_happened",
                "test_ask_faulty_server.py::test_a_model_that_repeats_nonsense_is_not_trusted",
                "live/test_grade_model.py::test_whatever_the_server_does_rules_can_go_on",
            ),
        ),
    ),
    "Verdicts and answers": (
        Guarantee(
            "A threshold chosen by `risk` keeps its promise: over many splits it is broken at most as often as agreed.",
            (
                "test_policy.py::test_over_100_splits_the_promise_is_broken_in_at_most_delta_of_them",
                "test_policy.py::test_in_the_worst_world_where_every_threshold_is_a_hair_too_risky_it_is_still_broken_in_at_most_delta",
                "test_policy.py::test_fewer_questions_than_could_ever_prove_it_keep_no_promise_and_the_policy_says_so",
            ),
            (),
            "Questions unlike those it was chosen on: `drift` detects and reports them.",
        ),
        Guarantee(
            "Gold labels never reach retrieval, gate or answering: no chain of imports leads there.",
            (
                "test_architecture.py::test_the_repository_keeps",
                "test_architecture.py::test_a_planted_violation_is_seen",
            ),
        ),
        Guarantee(
            "Threads, tasks, forks and processes that share a gate and a library get the same results as one alone.",
            (
                "test_concurrency.py::test_threads_hear_what_one_alone_hears",
                "test_concurrency.py::test_tasks_of_an_event_loop_hear_what_one_alone_hears",
                "test_concurrency.py::test_forked_children_share_a_loaded_gate_and_an_open_library",
                "test_concurrency.py::test_processes_hear_what_one_alone_hears",
            ),
            (),
            "A fork while another thread is inside onnxruntime or tantivy, models that run on several threads, and Qdrant's client: fork first, or spawn. Python without its lock.",
        ),
        Guarantee(
            "A saved trace replays to the same bytes.",
            ("test_traces.py::test_many_traces_in_one_file_replay_to_the_same_bytes",),
        ),
    ),
    "The service": (
        Guarantee(
            "Without API keys it only serves this machine and nobody can write; with keys, every request needs one.",
            (
                "test_service_keys.py::test_other_machines_are_served_only_with_a_key",
                "test_service_errors.py::test_writing_needs_keys",
                "test_service_errors.py::test_a_revoked_key_stops_working_at_once",
            ),
            (),
            "TLS: put a proxy in front of it.",
        ),
        Guarantee(
            "Keys are stored as hashes: the file alone opens nothing.",
            ("test_service_keys.py::test_a_token_gives_access_and_its_file_does_not",),
        ),
        Guarantee(
            "No text of a question or document appears in logs, metrics, OpenTelemetry traces or errors, unless you ask for it.",
            (
                "test_service_routes.py::test_the_log_has_one_line_per_request_and_no_text",
                "test_service_routes.py::test_invalid_values_are_named_by_field_and_not_repeated",
                "test_service_errors.py::test_an_internal_error_hides_its_details",
                "test_otel.py::test_a_verdict_is_an_evaluation_event_without_any_text",
            ),
        ),
        Guarantee(
            "Every accepted request is answered, also during shutdown; excess requests are rejected at once.",
            (
                "live/test_serve.py::test_a_shutdown_under_load_answers_what_it_has_begun",
                "live/test_serve.py::test_too_many_requests_get_429",
                "live/test_serve.py::test_a_worker_that_dies_is_replaced",
            ),
            ("soak: What was answered", "faults"),
            "Requests in a worker that is killed: their connection breaks; earlier acknowledged writes are there.",
        ),
        Guarantee(
            "Under mixed load with concurrent updates nothing grows: memory, handles, threads, files.",
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
    "Supply chain": (
        Guarantee(
            "Every package is pinned and can be installed by hash.",
            (
                "test_supply_chain.py::test_the_lock_is_what_the_constraints_say_and_has_a_hash_for_everything",
            ),
            ("supply: Pinned",),
            "`make test` installs by pin, and by hash with LOCKED=1.",
        ),
        Guarantee(
            "Every licence is on the allowed list: none is copyleft for code that uses the package.",
            ("test_supply_chain.py::test_every_installed_package_has_a_licence_that_is_allowed",),
            ("supply: Licences",),
            "Licences as the packages state them; their files are not read.",
        ),
        Guarantee(
            "The core works with the base install alone.",
            (
                "test_supply_chain.py::test_the_core_builds_searches_checks_and_asks_with_every_extra_absent",
            ),
            ("supply: A base install",),
        ),
        Guarantee(
            "No telemetry: suffice opens no connection that you did not ask for, and switches off onnxruntime's.",
            ("test_supply_chain.py::test_nothing_is_told_to_anybody_and_nothing_left_behind",),
            (),
            "Programs that import onnxruntime before suffice; extras with telemetry of their own (Haystack, DeepEval, Ragas).",
        ),
    ),
}
