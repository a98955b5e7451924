// `stoker trace`: what caches of other sizes and other policies would have made of a run's routes.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_limit.h"
#include "base/str_cat.h"
#include "cli/options.h"
#include "engine/trace_replay.h"

namespace stoker::cli {
namespace {

using engine::Replay;
using Policy = Replay::Policy;
using Counts = Replay::Counts;

struct TraceArgs {
  std::string path, made;
  engine::MadeRoutes routes;
  std::vector<std::string> caches;
  double half_life = model::EvictionPolicy::kHalfLife;
  bool json = false;
};

struct Column {
  const char* name;
  Policy policy;
};
constexpr Column kColumns[] = {{"recency", Policy::kRecency},
                               {"counts", Policy::kCounts},
                               {"lfu", Policy::kForever},
                               {"store", Policy::kStore},
                               {"optimum", Policy::kOptimum}};
constexpr size_t kStore = 3, kOptimum = 4;

/// A cache of some size.
struct Row {
  uint64_t bytes = 0;
  double cycles = 0;
  std::vector<Replay::Outcome> outcomes{};
};

/// Prompts warm the cache, and single tokens count, where there are any.
const Counts& counted(const Replay::Outcome& outcome) {
  return outcome.decode.tokens > 0 ? outcome.decode : outcome.all;
}

Result<std::vector<uint64_t>> sizes_of(const TraceArgs& args, const engine::Trace& trace) {
  std::vector<uint64_t> sizes;
  for (const std::string& text : args.caches) {
    STOKER_TRY(const uint64_t bytes, parse_size(text));
    sizes.push_back(bytes);
  }
  if (!sizes.empty()) return sizes;
  for (const double cycles : {0.5, 0.9, 1.1, 1.5, 2.0, 3.0, 5.0}) {
    const auto bytes = static_cast<uint64_t>(cycles * static_cast<double>(trace.cycle_bytes()));
    if (bytes < trace.bytes()) sizes.push_back(bytes);
  }
  sizes.push_back(trace.bytes());
  return sizes;
}

Result<engine::Trace> trace_of(const TraceArgs& args) {
  if (args.made.empty()) return engine::read_trace(args.path);
  engine::MadeRoutes routes = args.routes;
  const std::string prefix = "zipf:";
  const char* end = args.made.data() + args.made.size();
  const auto [at, error] = std::from_chars(std::min(args.made.data() + prefix.size(), end), end, routes.zipf);
  if (!args.made.starts_with(prefix) || error != std::errc() || at != end || !(routes.zipf >= 0 && routes.zipf <= 10)) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("--generate is ", quoted(args.made), ", wanted zipf:S with S from 0 to 10")};
  }
  if (routes.n_used > routes.n_experts) {
    return Error{ErrorCode::kInvalidArgument,
                 str_cat("--used is ", routes.n_used, ", more than the ", routes.n_experts, " of --experts")};
  }
  return engine::make_routes(routes);
}

std::string to_text(const engine::Trace& trace, const std::vector<Row>& rows) {
  const Counts& first = counted(rows[0].outcomes[0]);
  const bool decoded = rows[0].outcomes[0].decode.tokens > 0;
  std::string out = str_cat(trace.model, ": ", trace.layers.size(), " layers, ", trace.n_used, " of ", trace.n_experts,
                            " experts, a token passes through ", format_bytes(trace.cycle_bytes()), " of ",
                            format_bytes(trace.bytes()), "; ", first.tokens,
                            decoded ? " tokens one after the other\n" : " tokens, none by itself\n");
  char line[200];
  std::snprintf(line, sizeof line, "%12s %7s %8s %8s %8s %8s %8s %8s %7s %13s\n", "cache", "cycles", "slots", "recency",
                "counts", "lfu", "store", "optimum", "behind", "read/token");
  out += line;
  for (const Row& row : rows) {
    const auto percent = [&](size_t i) { return 100 * counted(row.outcomes[i]).hit_rate(); };
    const auto read = static_cast<uint64_t>(counted(row.outcomes[kStore]).bytes_per_token());
    std::snprintf(line, sizeof line, "%12s %7.2f %8lld %8.2f %8.2f %8.2f %8.2f %8.2f %7.2f %13s\n",
                  format_bytes(row.bytes).c_str(), row.cycles, static_cast<long long>(row.outcomes[0].n_slots),
                  percent(0), percent(1), percent(2), percent(kStore), percent(kOptimum),
                  percent(kOptimum) - percent(kStore), format_bytes(read).c_str());
    out += line;
  }
  return out;
}

nlohmann::ordered_json to_json(const Counts& counts) {
  return {{"tokens", counts.tokens},
          {"requests", counts.requests},
          {"hits", counts.hits},
          {"hit_rate", counts.hit_rate()},
          {"bytes_read", counts.bytes_read},
          {"bytes_per_token", counts.bytes_per_token()}};
}

nlohmann::ordered_json to_json(const engine::Trace& trace, const std::vector<Row>& rows) {
  nlohmann::ordered_json out = {{"model", trace.model},
                                {"layers", trace.layers.size()},
                                {"experts", trace.n_experts},
                                {"used", trace.n_used},
                                {"cycle_bytes", trace.cycle_bytes()},
                                {"bytes", trace.bytes()},
                                {"caches", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) {
    nlohmann::ordered_json cache = {{"bytes", row.bytes}, {"cycles", row.cycles}, {"slots", row.outcomes[0].n_slots}};
    for (size_t i = 0; i < row.outcomes.size(); ++i) {
      cache[kColumns[i].name] = {{"all", to_json(row.outcomes[i].all)}, {"decode", to_json(row.outcomes[i].decode)}};
    }
    out["caches"].push_back(std::move(cache));
  }
  return out;
}

int run(const TraceArgs& args) {
  if (args.path.empty() == args.made.empty()) return usage("trace: name a FILE or --generate zipf:S, one of them");
  if (!(args.half_life > 0)) return usage("--half-life: wanted a number of tokens above 0");
  auto trace = trace_of(args);
  if (!trace) return fail(trace.error());
  auto sizes = sizes_of(args, *trace);
  if (!sizes) return fail(Error{sizes.error().code, str_cat("--cache: ", sizes.error().message)});
  const Replay replay(*trace);
  std::vector<Row> rows;
  for (const uint64_t bytes : *sizes) {
    Row& row = rows.emplace_back(
        Row{.bytes = bytes, .cycles = static_cast<double>(bytes) / static_cast<double>(trace->cycle_bytes())});
    for (const Column& column : kColumns) row.outcomes.push_back(replay.run(column.policy, bytes, args.half_life));
  }
  const bool written =
      put(args.json ? to_json(*trace, rows).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                    : to_text(*trace, rows));
  return written ? kOk : fail_output();
}

}  // namespace

Command make_trace(CLI::App& root) {
  auto args = std::make_shared<TraceArgs>();
  CLI::App* app = root.add_subcommand(
      "trace", "What caches of other sizes and policies would have made of the routes of `run --trace`");
  app->add_option("file", args->path, "What `stoker run --trace FILE` has written")->type_name("FILE");
  app->add_option("--cache", args->caches,
                  "Sizes of the cache of experts; default: from half of what a token passes through up to all")
      ->type_name("SIZE");
  app->add_option("--half-life", args->half_life, "Tokens after which a use counts half")->capture_default_str();
  app->add_flag("--json", args->json, "Print JSON");
  app->add_option("--generate", args->made, "Make routes up instead: an expert of rank r is drawn with weight r^-S")
      ->type_name("zipf:S");
  add_integer<int64_t>(*app, "--experts", args->routes.n_experts, 1, 4096, "Of made-up routes, per layer")
      ->default_str("32");
  add_integer<int64_t>(*app, "--used", args->routes.n_used, 1, 4096, "Per token and layer")->default_str("4");
  add_integer<int64_t>(*app, "--layers", args->routes.n_layers, 1, 1024, "Layers with experts")->default_str("24");
  add_integer<int64_t>(*app, "--tokens", args->routes.n_tokens, 1, 1000000, "Tokens")->default_str("1000");
  app->add_option("--persist", args->routes.persistence,
                  "How likely an expert of a token is one of the next without being drawn")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_integer<uint64_t>(*app, "--seed", args->routes.seed, 0, UINT64_MAX, "Seed of the routes")->default_str("1");
  return {app, [args] { return run(*args); }};
}

}  // namespace stoker::cli
