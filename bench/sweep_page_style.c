/* sweep_page_style.c: the page's script. It sorts tables; without it they are
 * tables. */
#include "sweep_page.h"

const char *tac__page_script(void)
{
    return "for (const table of document.querySelectorAll('table.all'))\n"
           "  table.querySelectorAll('thead th').forEach((th, i) => {\n"
           "    const button = document.createElement('button');\n"
           "    button.append(...th.childNodes);\n"
           "    th.append(button);\n"
           "    button.onclick = () => {\n"
           "      const down = th.getAttribute('aria-sort') === 'ascending';\n"
           "      const value = row => {\n"
           "        const cell = row.cells[i], v = cell.dataset.v;\n"
           "        return v === undefined ? cell.textContent\n"
           "             : v === '' ? Infinity : Number(v);\n"
           "      };\n"
           "      const rows = [...table.tBodies[0].rows].sort((a, b) => {\n"
           "        const x = value(a), y = value(b);\n"
           "        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);\n"
           "      });\n"
           "      table.querySelectorAll('th').forEach(\n"
           "        other => other.removeAttribute('aria-sort'));\n"
           "      th.setAttribute('aria-sort',\n"
           "        down ? 'descending' : 'ascending');\n"
           "      table.tBodies[0].append(...rows);\n"
           "    };\n"
           "  });\n";
}
