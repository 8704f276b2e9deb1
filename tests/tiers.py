"""Which tests have the markers `long`, `torture` and `once`; tests/conftest.py sets them.

A name with its values in brackets is one case of a test, a name without them is all of its cases. They stand here and not at the
tests since what a test costs beside the others is measured for all of them at once: tests/cores.py names those that cost most.
"""

from __future__ import annotations

import re

ONCE = (  # beginnings of paths: a test of locks, kills, lanes or stores that fails is never run again, since a race is a fault
    *("tests/stores", "tests/team", "tests/torture", "tests/state", "tests/process", "tests/run/machines"),
    *("tests/test_crash", "tests/test_lanes", "tests/test_machines", "tests/test_signals", "tests/run/test_recover"),
)
ONCE_WORDS = re.compile(
    r"_(kills?|killed|locks?|lanes?|races?|at_once)(_|\[|$)"
)  # of a test's name, wherever it stands
LONG: set[str] = set()
ONLY_IN_TORTURE = {
    "test_three_lanes_anywhere_give_the_same_as_one_here[dask]",
    "test_the_example_goes_to_done",
    "test_kills_at_random_moments_lose_and_repeat_nothing[dask]",
    "test_features_set_aside_in_a_row_are_a_standstill[2-2]",
    "test_a_proven_claim_between_them_begins_the_count_again",
    "test_disputes_come_to_an_end",
    "test_a_number_that_was_written_down_is_kept_and_counts_features",
    "test_a_worker_that_needs_what_has_passed_uses_its_tries",
    "test_workers_that_are_blocked_by_the_same_thing_are_set_aside_too",
    "test_a_restored_mission_comes_out_the_same",
    "test_runs_at_once_and_killed_runs_are_played_as_what_they_were",
    "test_an_interrupted_mission_comes_out_the_same[9]",
    "test_an_archived_mission_is_played_by_its_id",
    "test_each_lane_has_services_of_its_own",
    "test_the_work_of_a_try_that_failed_is_there_for_the_next",
    "test_a_run_that_is_killed_before_it_claims_anything_holds_up_no_other_lane",
    "test_a_loop_that_finds_all_work_taken_goes_on_as_soon_as_that_ends",
    "test_a_guardian_that_is_killed_costs_no_try_and_ends_it_with_75[words1]",
    "test_a_guardian_that_is_killed_costs_no_try_and_ends_it_with_75[words2]",
    "test_a_run_that_is_killed_ends_it_with_75_and_a_sentence[words1]",
    "test_a_cap_ends_it_after_the_curator[max_tokens = 100-BUDGET tokens-6]",
    "test_a_cap_ends_it_after_the_curator[max_cost_usd = 1.0-BUDGET cost-6]",
    "test_a_cap_ends_it_after_the_curator[max_hours = 0.00001-BUDGET hours-5]",
    "test_a_signal_ends_the_run_under_way_with_everything_it_started[1-143]",
    "test_a_signal_ends_the_run_under_way_with_everything_it_started[2-130]",
    "test_a_merged_mission_goes_on_with_a_changed_spec[edited, beside other work-True]",
    "test_an_edit_while_a_planner_works",
    "test_an_edit_that_is_staged_and_saved_again",
    "test_an_edit_that_is_committed_on_the_missions_branch",
    "test_it_is_put_away_and_the_next_one_begins_in_the_folder",
    "test_a_plan_is_proven_there",
    "test_killed_at_any_moment_the_next_start_has_the_old_mission_or_the_new_one",
    "test_a_second_mission_begins_where_the_first_is_done[True]",
    "test_a_contract_that_is_not_what_its_log_says_waits_for_a_person[a check]",
    "test_a_contract_that_is_not_what_its_log_says_waits_for_a_person[a new claim]",
    "test_a_contract_that_is_not_what_its_log_says_waits_for_a_person[the setup]",
    "test_a_mission_with_a_filter_ends_done[landlock]",
    "test_a_module_that_an_agent_leaves_beside_a_filter_is_confined[clean-landlock]",
    "test_a_module_that_an_agent_leaves_beside_a_filter_is_confined[smudge-landlock]",
    "test_a_module_that_an_agent_leaves_beside_a_filter_is_confined[smudge-bubblewrap]",
    "test_a_check_uses_the_tools_of_each_home_and_sees_no_login[landlock]",
    "test_an_honest_mission_reaches_done[pyenv-bubblewrap]",
    "test_a_hundred_turns_take_less_than_twice_their_last_request",
    "test_forty_at_once_are_all_answered_and_none_is_lost",
    "test_notes_given_in_parallel_are_counted_too",
    "test_recovery_that_is_killed_itself_is_gone_on_with[os.unlink]",
    "test_recovery_that_is_killed_itself_is_gone_on_with[os.posix_spawn]",
    "test_no_agent_gives_spending_back[the books]",
    "test_no_agent_gives_spending_back[the run and its lock]",
    "test_a_kill_at_any_step_loses_nothing_of_a_person[os.link]",
    "test_a_kill_at_any_step_loses_nothing_of_a_person[os.symlink]",
    "test_a_kill_before_any_step_of_a_run_is_settled[os.unlink]",
    "test_a_kill_before_any_step_of_a_run_is_settled[os.posix_spawn]",
    "test_a_backlog_of_any_length_needs_the_memory_of_one_batch",
    "test_a_crash_between_and_in_batches_loses_and_doubles_nothing",
    "test_any_umask_gives_a_mission_that_works_and_that_others_cannot_change[000]",
    "test_whatever_ends_the_loop_nothing_lives_on_and_the_next_start_goes_on[SIGHUP-0]",
    "test_whatever_ends_the_loop_nothing_lives_on_and_the_next_start_goes_on[SIGINT-0]",
    "test_sixteen_append_while_a_curator_compacts_and_nothing_is_lost",
    "test_without_one_lesson_no_page_has_its_line",
    "test_a_web_service_is_checked_in_a_browser_where_there_is_one",
    "test_one_sentence_is_a_mission",
    "test_three_lanes_anywhere_give_the_same_as_one_here[home]",
    "test_one_fault_in_two_features_is_the_first_thing_that_is_said",
    "test_the_brain_takes_a_mission_to_done",
    "test_the_example_begins_in_an_empty_folder_and_goes_to_done",
    "test_the_place_where_two_texts_part_is_marked",
    "test_what_a_worker_cannot_settle_is_a_persons_after_one_try[echo >>else.txt]",
    "test_an_honest_mission_reaches_done[npm-landlock]",
    "test_lanes_print_whole_lines_and_one_spinner_names_them_all",
    "test_a_mission_on_three_workers_is_done_although_one_is_killed",
}
