#pragma once

#include <string>
#include <string_view>

/// What a log line and a progress bar that share one terminal must know of each other. Threads: any.
namespace stoker::terminal {

bool is_terminal(int fd);
/// Columns of the terminal `fd`; 80 when it does not say.
int width(int fd);

/// Writes `text` in one piece, first wiping a bar that is on the screen. What cannot be written is lost: there is
/// nobody left to tell.
void write_above_bar(int fd, std::string_view text);

/// Draws `bar` over the one before, or wipes it when empty.
void draw_bar(int fd, std::string_view bar);

}  // namespace stoker::terminal
