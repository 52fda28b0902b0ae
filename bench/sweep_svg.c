/* sweep_svg.c: the two pictures that say most as a file, for documents:
 * accuracy against H, and bytes against error. */
#include "sweep_page.h"

static tac_status draw(sweep_page *p, picture *accuracy, picture *front,
                       const char *path)
{
    picture *const both[] = {accuracy, front};
    char subtitle[160];
    snprintf(subtitle, sizeof subtitle,
             "%.40s on %.40s, %d rank%s, %lld seed%s",
             p->s->o->model ? p->s->o->model : "?",
             p->s->o->data ? p->s->o->data : "?", p->s->world,
             p->s->world == 1 ? "" : "s", (long long)p->s->o->seeds,
             p->s->o->seeds > 1 ? "s; bars: standard deviation" : "");
    accuracy->panel.subtitle = front->panel.subtitle = subtitle;
    TAC_TRY(tac__picture_accuracy(accuracy));
    TAC_TRY(tac__picture_front(front));
    return tac__picture_write(both, 2, path);
}

tac_status sweep_write_svg(const sweep *s, const char *path)
{
    sweep_page p;
    picture accuracy = {.page = &p}, front = {.page = &p};
    tac_status status = tac__page_prepare(&p, s);
    if (status >= 0) status = draw(&p, &accuracy, &front, path);
    tac__picture_free(&accuracy);
    tac__picture_free(&front);
    tac__page_free(&p);
    return status;
}
