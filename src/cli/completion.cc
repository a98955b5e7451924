#include "base/str_cat.h"
#include "cli/options.h"

namespace stoker::cli {
namespace {

std::string options_of(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out += str_cat(out.empty() ? "--" : " --", name);
    for (const std::string& name : option->get_snames()) out += str_cat(out.empty() ? "-" : " -", name);
  }
  return out;
}

/// Groups of options are sub-apps without a name.
std::string all_options(const CLI::App& app) {
  std::string out = options_of(app);
  for (const CLI::App* group :
       app.get_subcommands([](const CLI::App* a) { return a->get_name().empty() || a->get_name()[0] == '['; })) {
    out += str_cat(" ", options_of(*group));
  }
  return out;
}

std::string bash_script(const CLI::App& root) {
  std::string names, cases;
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; })) {
    names += str_cat(names.empty() ? "" : " ", app->get_name());
    cases += str_cat("    ", app->get_name(), ") words=\"", all_options(*app), "\" ;;\n");
  }
  return str_cat(
      "_stoker() {\n  local words cur=${COMP_WORDS[COMP_CWORD]}\n  case ${COMP_WORDS[1]} in\n", cases,
      "    *) words=\"", names,
      "\" ;;\n  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n  [[ $cur != -* && $COMP_CWORD -gt 1 ]] && "
      "COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -o filenames -F _stoker stoker\n");
}

std::string fish_script(const CLI::App& root) {
  std::string out = "complete -c stoker -n __fish_use_subcommand -f\n";
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; })) {
    out += str_cat("complete -c stoker -n __fish_use_subcommand -a ", app->get_name(), " -d '", app->get_description(),
                   "'\n");
    std::string word;
    for (const char c : all_options(*app) + " ") {
      if (c != ' ') {
        word += c;
        continue;
      }
      const std::string_view name = word;
      if (name.starts_with("--"))
        out += str_cat("complete -c stoker -n '__fish_seen_subcommand_from ", app->get_name(), "' -l ", name.substr(2),
                       "\n");
      if (name.starts_with("-") && name.size() == 2)
        out += str_cat("complete -c stoker -n '__fish_seen_subcommand_from ", app->get_name(), "' -s ", name.substr(1),
                       "\n");
      word.clear();
    }
  }
  return out;
}

}  // namespace

Command make_completion(CLI::App& root) {
  auto shell = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("completion", "Print a completion script: eval \"$(stoker completion bash)\"");
  app->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return {app, [shell, &root] {
            const std::string script = *shell == "fish" ? fish_script(root)
                                       : *shell == "zsh"
                                           ? str_cat("autoload -U +X bashcompinit && bashcompinit\n", bash_script(root))
                                           : bash_script(root);
            return put(script) ? kOk : fail_output();
          }};
}

}  // namespace stoker::cli
